"""Random programs, held against the reference."""
