"""Matrix products written in linalg: the parts of the pass `convert-linalg-to-frag`."""
