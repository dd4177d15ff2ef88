"""A compilation: its passes, a program on its way, the compiled kernel, and what that is called with."""
