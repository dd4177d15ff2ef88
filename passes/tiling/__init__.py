"""Schedules for `frag.matmul`: the parts of the pass `frag-tile`."""
