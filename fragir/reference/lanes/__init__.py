"""Lane-level code in the reference: regions of `frag.lanes`, for all threads at once."""
