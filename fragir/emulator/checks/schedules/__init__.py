"""Whether what one run shows holds for every schedule."""
