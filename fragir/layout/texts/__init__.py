"""Layouts in the texts of others, read and written: CuTe's, Triton's, F2 bases, formulas.

A text means the same layout as the project that wrote it says. `fragir.layout.read_layout` reads
any of them, `write_layout` writes them; each notation has a file here.
"""
