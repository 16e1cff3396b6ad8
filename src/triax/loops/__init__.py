"""Loops: how experience is gathered and fed to an agent."""

from triax.loops.gymnasium import Hook, HostAgent, Progressed, evaluate, run_gymnasium

__all__ = ["Hook", "HostAgent", "Progressed", "evaluate", "run_gymnasium"]
