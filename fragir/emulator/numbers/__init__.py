"""Numbers: PTX's types as arrays, formats, rounding."""
