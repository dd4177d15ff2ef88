"""What stands before the colon of `--arg KIND:VALUE`; `fragir.cli.arguments` reads them."""

MODES = ("in", "out", "inout")
KINDS = (
    *MODES,
    *(f"{sign}{width}" for sign in "sub" for width in (8, 16, 32, 64)),
    *("f16", "bf16", "f32", "f64", "bytes"),
)
COMPOUND = ("tma", "tma-pointer", "ptr", "pointers", "struct")
"""Kinds that are made of others, or point to them."""
