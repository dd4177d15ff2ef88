"""`linalg-normalize`: every structured operation becomes a `linalg.generic`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fragir.passes.kernels import kernels_of


@dataclass(frozen=True)
class LinalgNormalizePass(ModulePass):
    """Named operations become maps, iterators and a body; `linalg.fill` stays.

    `linalg.softmax` becomes its maximum, exponentials, their sum and a division. On tensors, what
    only transposes or broadcasts disappears in the maps of those who read it. Padding, tables of
    elements and joined tensors become fills, generics and insertions. Memory and tensors of
    i1 become such of i8 that hold 0 or 1, of index such of i32. `affine.apply` and `affine.min`
    become arith, arith and math on tensors generics. Of several outputs, those that are reduced get
    a generic of their own. Products that are summed in bf16 or 8 bits are summed in f32.
    """

    name = "linalg-normalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.normalizing.affine import expand_affine
        from fragir.passes.normalizing.elementwise import expand_elementwise
        from fragir.passes.normalizing.folding import fold_copies
        from fragir.passes.normalizing.generalising import generalise
        from fragir.passes.normalizing.softmax import expand_softmax
        from fragir.passes.normalizing.splitting import split_generics
        from fragir.passes.normalizing.stored_elements import widen_elements
        from fragir.passes.normalizing.tensors import expand_tensors
        from fragir.passes.normalizing.wide_sums import widen_sums

        for function in kernels_of(op):
            expand_affine(function)
            expand_softmax(function)
            expand_elementwise(function)
            generalise(function)
            split_generics(function)
            widen_sums(function)
            expand_tensors(function)
            widen_elements(function)
            fold_copies(function)
