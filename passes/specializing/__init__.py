"""Programs divided among warps: the parts of the pass `frag-specialize`."""
