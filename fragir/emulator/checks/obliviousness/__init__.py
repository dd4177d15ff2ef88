"""Whether what one run shows holds for every content of the arrays."""
