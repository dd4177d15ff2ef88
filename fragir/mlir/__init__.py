"""Text of MLIR: its lexer, errors with a place, and what holds of values in it."""
