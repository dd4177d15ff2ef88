"""`linalg-normalize`: every structured operation becomes a `linalg.generic`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, Float16Type, ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fragir.dialects.linalg.destinations import EXTENSIONS
from fragir.dialects.shorthands import is_stored_wider
from fragir.passes.tile_passes import kernels_of


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
        for function in kernels_of(op):
            _normalize(function)


def _normalize(function: func.FuncOp) -> None:
    """Takes the steps that there is something for; what they need is imported then."""
    names = _names(function)
    if not names.isdisjoint(AFFINE):
        from fragir.passes.normalizing.generalising import expand_affine

        expand_affine(function)
    if "linalg.softmax" in names:
        from fragir.passes.normalizing.generalising import expand_softmax

        expand_softmax(function)
    if not names.isdisjoint(EXTENSIONS):
        from fragir.passes.normalizing.extensions import expand_extensions

        expand_extensions(function)
    if any(map(_is_on_tensors, function.walk())):
        from fragir.passes.normalizing.generalising import expand_elementwise

        expand_elementwise(function)
    if any(name.startswith("linalg.") and name not in GENERAL for name in names):
        from fragir.passes.normalizing.generalising import generalise

        generalise(function)
    if any(len(x.results) > 1 for x in function.walk() if x.name == "linalg.generic"):
        from fragir.passes.normalizing.splitting import split_generics

        split_generics(function)
    if any(map(_may_be_narrow_sum, function.walk())):
        from fragir.passes.normalizing.wide_sums import widen_sums

        widen_sums(function)
    if any(map(_is_of_tensors, function.walk())):
        from fragir.passes.normalizing.tensors import expand_tensors

        expand_tensors(function)
    if any(is_stored_wider(v.type) for x in function.walk() for v in (*x.operands, *x.results)):
        from fragir.passes.normalizing.stored_elements import widen_elements

        widen_elements(function)
    if any(x.results for x in function.walk() if x.name == "linalg.generic"):
        from fragir.passes.normalizing.splitting import fold_copies

        fold_copies(function)


AFFINE = ("affine.apply", "affine.min")
GENERAL = ("linalg.generic", "linalg.fill", "linalg.yield", "linalg.index")
"""What stays."""
OF_TENSORS = frozenset(
    (
        *("tensor.splat", "tensor.from_elements", "tensor.insert", "tensor.insert_slice"),
        *("tensor.concat", "tensor.pad", "tensor.generate", "tensor.pack", "tensor.unpack"),
        "tensor.reshape",
        *("linalg.pack", "linalg.unpack"),
    )
)


def is_expanded(module: ModuleOp) -> bool:
    """Whether several operations come into the place of one."""
    return any(
        op.name in ("linalg.softmax", *EXTENSIONS)
        or _is_of_tensors(op)
        or _is_on_tensors(op)
        or _is_rewritten(op)
        for op in module.walk()
    )


def _names(function: func.FuncOp) -> set[str]:
    return {op.name for op in function.walk()}


def _is_of_tensors(op: Operation) -> bool:
    """Whether structured operations come into the place of one on whole tensors."""
    return (
        op.name in OF_TENSORS
        or (op.name == "tensor.extract" and isinstance(op.parent_op(), func.FuncOp))
        or (op.name == "arith.constant" and isinstance(op.results[0].type, TensorType))
    )


def _is_on_tensors(op: Operation) -> bool:
    """Whether an operation computes with whole tensors."""
    return op.name.startswith(("arith.", "math.")) and any(
        isinstance(result.type, TensorType) for result in op.results
    )


def _may_be_narrow_sum(op: Operation) -> bool:
    if op.name != "linalg.generic" or not op.regions[0].blocks or not op.regions[0].block.args:
        return False
    total = op.regions[0].block.args[-1].type
    return (
        isinstance(total, AnyFloat) and total.bitwidth <= 16 and not isinstance(total, Float16Type)
    )


def _is_rewritten(op: Operation) -> bool:
    """Whether other generics come into the place of one."""
    if op.name == "linalg.generic" and len(op.results) > 1:
        from fragir.passes.normalizing.splitting import parts_of

        return bool(parts_of(op))
    if not _may_be_narrow_sum(op):
        return False
    from fragir.passes.normalizing.wide_sums import factors_of

    return factors_of(op) is not None
