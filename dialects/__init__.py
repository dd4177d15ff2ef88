"""The xDSL dialects of fragir: `frag` (matrix and tile level) and `ptx` (lane level)."""
