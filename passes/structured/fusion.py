"""Makes one `frag.matmul` of a product and of the elementwise operations around it.

The function is executed in the mind, front to back: for every buffer that an operation writes,
its contents are noted as an expression of one element of the sum. What no one else sees is then
gone, and the expression in the one buffer that is seen is the epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.frag.instructions import accumulator_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.mlir.diagnostics import fail, message_of
from fragir.passes.structured.bodies import repeat
from fragir.passes.structured.memory import erase_dead, is_scalar, owners
from fragir.passes.structured.products import (
    ROW,
    WHOLE,
    ElementIndex,
    Product,
    check_broadcast,
    check_buffer,
    column_of,
    indices_of,
    is_local,
    is_reduction,
    name_of,
    place_text,
    recognise,
    replace_sizes,
    retype,
    whole_of,
)

SCHEDULE = ("tile", "warps", "stages")


@dataclass(frozen=True)
class BufferContents:
    """What a buffer holds at (row, column): a value of the epilogue, or one from outside it."""

    value: SSAValue
    writer: Operation
    of_product: bool
    uniform: bool = False
    """Whether it is the same everywhere (linalg.fill)."""


class Fusion:
    """One function with one product."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.name = f"@{function.sym_name.data}"
        self.epilogue = Block()
        self.contents: dict[SSAValue, BufferContents] = {}
        self.reads: dict[tuple[SSAValue, ElementIndex], BlockArgument] = {}
        self.product: Product | None = None
        self.whole = WHOLE
        """How the result is indexed."""
        self.members: list[Operation] = []
        self.local: list[Operation] = []
        self.at: Operation = function
        """Where it has come to: no function with what stands up to there can be fused, if `run`
        fails before the last operation."""

    def run(self) -> None:
        """Replaces the linalg operations of the function by one frag.matmul."""
        for self.at in self.function.body.block.ops:
            self._step(self.at)
        if self.product is None:
            fail(
                self.members[0],
                f"{self.name} has no matrix product; fragir compiles products, each with the "
                "elementwise operations that follow it",
            )
        self._replace(self.product, self._target(self.product))
        self._clean()

    # --- front to back ------------------------------------------------------------------------

    def _step(self, op: Operation) -> None:
        if isinstance(op, ops.FillOp):
            self._fill(op)
        elif isinstance(op, LinalgStructuredOperation):
            if is_reduction(op):
                self._multiply(op)
            else:
                self._elementwise(op)
        elif isinstance(op, memref.CopyOp):
            self._copy(op)
        elif isinstance(op, memref.AllocOp) or (
            isinstance(op, memref.DeallocOp) and is_local(op.memref)
        ):
            self.local.append(op)
        elif not (isinstance(op, memref.DimOp) or is_scalar(op)) and not (
            isinstance(op, func.ReturnOp) and not op.operands
        ):
            hint = "such a function holds linalg, memref.alloc, memref.dim, and arith on scalars"
            if op.name.startswith("linalg."):
                hint = "run linalg-normalize before, or write a linalg.generic"
            fail(op, f"{op.name} is not supported beside a product in {self.name}; {hint}")

    def _fill(self, op: ops.FillOp) -> None:
        if len(op.inputs) != 1 or len(op.outputs) != 1:
            fail(op, "linalg.fill takes one number and one memref")
        number, output = op.inputs[0], op.outputs[0]
        check_buffer(op, output)
        if number.type != memref_type(output.type).element_type:
            fail(op, f"linalg.fill of {output.type} takes a number of that type")
        self._write(op, output, BufferContents(number, op, False, True))

    def _copy(self, op: memref.CopyOp) -> None:
        check_buffer(op, op.source)
        check_buffer(op, op.destination)
        if len(memref_type(op.source.type).get_shape()) != len(self.whole):
            fail(op, f"memref.copy of {op.source.type}; beside a matrix product it copies matrices")
        value = self._read(op, op.source, self.whole)
        held = self.contents.get(op.source)
        of_product, uniform = (held.of_product, held.uniform) if held else (False, False)
        self._write(op, op.destination, BufferContents(value, op, of_product, uniform))

    def _multiply(self, op: LinalgStructuredOperation) -> None:
        if self.product is not None:
            fail(
                op,
                f"{self.name} has a second matrix product; a kernel computes one, so split the "
                "program into several functions",
            )
        product = recognise(op)
        for memory in (product.a.memory, product.b.memory):
            check_buffer(op, memory)
            if memory in self.contents or is_local(memory):
                fail(
                    op,
                    f"{name_of(memory)} is computed in the same function; a product multiplies "
                    "what memory holds when the kernel starts: compute it in another function",
                )
        check_buffer(op, product.c)
        self.product = product
        self.whole = whole_of(len(memref_type(product.c.type).get_shape()))
        value: SSAValue = self.epilogue.insert_arg(product.accumulate, 0)
        value.name_hint = "sum"
        if isinstance(product.total, AnyFloat) and product.accumulate != product.total:
            value = self._append(op, arith.SIToFPOp(value, product.total))
        start = self.contents.get(product.c)
        if start is None and is_local(product.c):
            fail(
                op,
                f"the sum starts from {name_of(product.c)}, which nothing has written; put "
                "linalg.fill with zero before it",
            )
        if start is None or not _is_zero(start.value):
            before = self._read(op, product.c, self.whole)
            add = arith.AddfOp if isinstance(product.total, AnyFloat) else arith.AddiOp
            value = self._append(op, add(before, value))
        self._write(op, product.c, BufferContents(value, op, True))

    def _elementwise(self, op: LinalgStructuredOperation) -> None:
        if len(op.outputs) != 1:
            fail(op, f"{op.name} has {len(op.outputs)} outputs; write one operation for each")
        for inner in op.body.block.ops:
            if not isinstance(inner, ops.YieldOp) and not is_scalar(inner):
                fail(op, f"{inner.name} in the body of {op.name}: it holds arith and math only")
        check_buffer(op, op.outputs[0])
        used = [
            (argument, operand, place)
            for argument, operand, place in zip(
                op.body.block.args, op.operands, indices_of(op), strict=True
            )
            if argument.uses.get_length() > 0
        ]
        held = [self.contents.get(operand) for _, operand, _ in used]
        if not any(contents is not None and contents.of_product for contents in held):
            fail(
                op,
                f"{op.name} uses no matrix product before it; elementwise operations are compiled "
                "as what follows a product (and transposes as the maps of the product)",
            )
        values: dict[SSAValue, SSAValue] = {}
        for argument, operand, place in used:
            values[argument] = self._element(op, operand, place)
        *body, end = op.body.block.ops
        repeat(body, values, self.epilogue.add_op, op)
        result = end.operands[0]
        self._write(op, op.outputs[0], BufferContents(values.get(result, result), op, True))

    # --- pieces of a step ---------------------------------------------------------------------

    def _append(self, source: Operation, op: Operation) -> SSAValue:
        op.location = source.location
        self.epilogue.add_op(op)
        return op.results[0]

    def _write(self, op: Operation, output: SSAValue, contents: BufferContents) -> None:
        self.members.append(op)
        self.contents[output] = contents

    def _element(self, op: Operation, operand: SSAValue, place: ElementIndex) -> SSAValue:
        if not is_memref(operand.type):
            return operand
        check_buffer(op, operand)
        return self._read(op, operand, place)

    def _read(self, op: Operation, memory: SSAValue, place: ElementIndex) -> SSAValue:
        """One element of a buffer: what was written to it, else an argument of the epilogue."""
        held = self.contents.get(memory)
        if held is not None:
            if place != self.whole and not held.uniform:
                fail(
                    op,
                    f"{op.name} reads {name_of(memory)} at {place_text(place)}; a result is known "
                    "only to the thread that computes it, so index it as the output is indexed",
                )
            return held.value
        if is_local(memory):
            fail(op, f"{name_of(memory)} is read, but nothing has written it")
        check_broadcast(op, memory, place, len(self.whole))
        if (memory, place) not in self.reads:
            element = memref_type(memory.type).element_type
            argument = self.epilogue.insert_arg(element, len(self.epilogue.args))
            argument.name_hint = memory.name_hint
            self.reads[memory, place] = argument
        return self.reads[memory, place]

    # --- the operation ------------------------------------------------------------------------

    def _target(self, product: Product) -> SSAValue:
        """The one buffer that is written and that the caller sees."""
        seen = [(b, c) for b, c in self.contents.items() if not is_local(b)]
        for buffer, contents in seen:
            if not contents.of_product:
                fail(
                    contents.writer,
                    f"{name_of(buffer)} gets nothing of the product; write it in another function",
                )
        if not seen:
            fail(
                product.op,
                "nothing that the caller sees is written; put the result into an argument",
            )
        if len(seen) > 1:
            (first, _), (second, contents) = seen[:2]
            fail(
                contents.writer,
                f"{name_of(first)} and {name_of(second)} are both results, but a kernel writes "
                f"one; make {name_of(first)} a memref.alloc, or write into it here as well",
            )
        target, contents = seen[0]
        if target in (product.a.memory, product.b.memory):
            fail(
                contents.writer,
                f"{name_of(target)} is both an input of the product and the result, which other "
                "blocks still read; write the result elsewhere",
            )
        for memory, place in self.reads:
            if memory is target and place != self.whole:
                fail(
                    contents.writer,
                    f"{name_of(target)} is the result and also read at {place_text(place)}, where "
                    "another block may have overwritten it; write the result elsewhere",
                )
        return target

    def _replace(self, product: Product, target: SSAValue) -> None:
        value, anchor = self.contents[target].value, self.members[-1]
        for op in reversed(list(self.epilogue.ops)):
            if all(r is not value and r.uses.get_length() == 0 for r in op.results):
                Rewriter.erase_op(op)
        old = self.epilogue.insert_arg(memref_type(target.type).element_type, 1)
        old.name_hint = "old"
        given = self.reads.pop((target, self.whole), None)
        if given is not None:
            if given is value:
                value = old
            given.replace_all_uses_with(old)
            self.epilogue.erase_arg(given)
        extra: list[SSAValue] = []
        for (memory, place), argument in self.reads.items():
            if argument.uses.get_length() == 0 and argument is not value:
                self.epilogue.erase_arg(argument)
            elif place == (ROW,):  # of a matrix
                extra.append(column_of(self.function, product, memory, anchor))
            else:
                extra.append(memory)
        a = retype(self.function, product, product.a)
        b = retype(self.function, product, product.b)
        names = [element_name(factor.element) for factor in (product.a, product.b)]
        usual = accumulator_of(names[0], names[1], None)
        op = frag.MatmulOp(
            a,
            b,
            target,
            extra=extra,
            a_transposed=product.a.transposed,
            b_transposed=product.b.transposed,
            accumulate=None if element_name(product.accumulate) == usual else product.accumulate,
            epilogue=None if self._is_plain(value) else self._region(product, value),
        )
        op.attributes.update(
            {
                name: product.op.attributes[name]
                for name in SCHEDULE
                if name in product.op.attributes
            }
        )
        op.location = product.op.location
        Rewriter.insert_op(op, InsertPoint.after(anchor))
        try:
            op.verify_()
        except VerifyException as error:
            fail(product.op, message_of(error))

    def _is_plain(self, value: SSAValue) -> bool:
        """Whether the result is the sum, or the sum rounded: what happens without an epilogue."""
        total = self.epilogue.args[0]
        return value is total or (
            isinstance(value.owner, arith.TruncFOp) and value.owner.input is total
        )

    def _region(self, product: Product, value: SSAValue) -> Region:
        end = frag.YieldOp(value)
        end.location = product.op.location
        self.epilogue.add_op(end)
        return Region(self.epilogue)

    def _clean(self) -> None:
        """Erases what was fused, the buffers that it went through, and scalars only they used."""
        for op in self.local:
            if isinstance(op, memref.AllocOp):
                replace_sizes(op)
        allocations = [op for op in self.local if isinstance(op, memref.AllocOp)]
        others = [op for op in self.local if not isinstance(op, memref.AllocOp)]
        candidates: list[Operation] = []
        for op in (*self.members, *others, *allocations):
            candidates += owners(op)
            Rewriter.erase_op(op)
        erase_dead(candidates, self.function.body.block)


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant +0; adding -0 or anything else has to be written out."""
    constant = value.owner
    if not isinstance(constant, arith.ConstantOp):
        return False
    number = constant.value
    if isinstance(number, IntegerAttr):
        return number.value.data == 0
    return isinstance(number, FloatAttr) and str(number.value.data) == "0.0"
