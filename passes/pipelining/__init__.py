"""Loops whose loads run ahead of their products: the parts of the pass `frag-pipeline`."""
