"""Checks: what can be wrong with a kernel that runs."""
