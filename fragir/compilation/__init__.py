"""A compilation: its passes, a program on its way, the kernel, and what that is called with."""
