"""One lock for the weights of all functions: a thread may act while another one trains."""

import threading

WEIGHTS_LOCK = threading.RLock()
"""Held from the moment that weights are read until the jitted call that takes them is on its way.

A learning step takes over the memory of what it trains, so that a thread which read the weights just before would hand
deleted arrays to its own call. One lock, since a call may read the weights of several functions, in any order.
"""
