"""Launching a kernel: arguments, limits, the run itself."""
