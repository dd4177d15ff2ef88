"""Kernels of structured operations: products, rows, and elements from their places."""
