"""Foreign PTX as the `ptx` dialect: registers become values, labels blocks."""
