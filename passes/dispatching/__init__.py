"""Functions of linalg as programs of kernels: the parts of the pass `linalg-dispatch`."""
