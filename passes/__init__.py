"""Passes over the dialects, one a file, named as on the command line."""
