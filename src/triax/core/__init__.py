"""Pytrees, keys, errors, arrays, schedules, printing: JAX and NumPy only, no reinforcement learning."""
