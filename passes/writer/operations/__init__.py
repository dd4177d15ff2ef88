"""How the operations of the lane level are written, a subject a file.

Importing this attaches them to `fragir.dialects.interfaces.WRITERS`: what most programs have at
once, the rest when a program has it.
"""

from fragir.dialects.interfaces import WRITERS
from fragir.passes.writer.operations import memory as memory
from fragir.passes.writer.operations import naming as naming
from fragir.passes.writer.operations import products as products
from fragir.passes.writer.operations import values as values

#: The subjects of operations that many programs do without.
LATE = {
    "atomics": ("ptx.atomic",),
    "control": ("scf.for", "scf.if", "scf.yield"),
    "distances": ("ptx.mul_wide", "ptx.offset_wide"),
    "exchange": (
        "ptx.barrier",
        "ptx.movmatrix",
        "ptx.nibbles",
        "ptx.permute",
        "ptx.shuffle",
        "ptx.shuffle_xor",
    ),
    "foreign": ("cf.br", "cf.cond_br", "ptx.end", "ptx.text", "ptx.undefined"),
    "instruction": ("ptx.op",),
    "reporting": ("ptx.assert_fail", "ptx.printf"),
    "sparse": ("ptx.mma_sparse",),
    "loops": ("scf.condition", "scf.while"),
}

for _subject, _names in LATE.items():
    WRITERS.attached_in(f"{__name__}.{_subject}", *_names)
