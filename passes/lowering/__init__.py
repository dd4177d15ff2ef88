"""From tiles to lanes: the parts of the pass `convert-frag-to-ptx`."""
