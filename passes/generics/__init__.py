"""Generics without a product as tile programs: the parts of the pass `linalg-tile`."""
