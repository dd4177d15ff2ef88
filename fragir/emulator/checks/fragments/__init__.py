"""Where the fragments of tensor-core instructions come from."""
