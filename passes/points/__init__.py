"""Kernels of linalg that compute every element from its place: whatever maps and loops it has."""
