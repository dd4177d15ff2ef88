"""Every fragment family, from matrix IR to executed PTX."""
