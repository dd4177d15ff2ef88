"""Which function of its inputs a kernel computes."""
