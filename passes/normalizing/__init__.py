"""linalg as maps, iterators and bodies: the parts of the pass `linalg-normalize`."""
