"""Memory for tensors: the parts of the pass `frag-bufferize`."""
