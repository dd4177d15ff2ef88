"""A function's pieces as blocks of SSA values.

Cytron, Ferrante, Rosen, Wegman and Zadeck, "Efficiently computing static single assignment form"
(1991), pruned by liveness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import cf
from xdsl.dialects.builtin import (
    BFloat16Type,
    FileLineColLoc,
    Float16Type,
    IntAttr,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fragir.dialects import ptx
from fragir.dialects.ptx.statement import writes
from fragir.passes.lifting.blocks import Piece, pieces, predecessors
from fragir.passes.lifting.dominance import dominators, frontiers, meetings, order
from fragir.passes.lifting.liveness import live
from fragir.passes.lifting.scopes import Flat, flat, refusal
from fragir.ptx import tree
from fragir.ptx.opcodes.table import found as row_of
from fragir.ptx.visit import transform, walk
from fragir.ptx.writer import write_node

_TYPES: dict[str, Attribute] = {
    "pred": i1,
    **dict.fromkeys(("b8", "u8", "s8"), ptx.BitsType(8)),
    **dict.fromkeys(("b16", "u16", "s16"), i16),
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2"), i32),
    **dict.fromkeys(("b64", "u64", "s64", "f32x2"), i64),
    "b128": ptx.BitsType(128),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": f32,
    "f64": f64,
}


def body(function: tree.Function, module: tree.Module, outside: set[str]) -> tuple[Region, str]:
    """The body of a function as blocks, and its variables as text."""
    whole = flat(function, module, outside)
    region = _Building(whole, module).region()
    return region, " ".join(write_node(variable) for variable in whole.variables)


class _Building:
    def __init__(self, whole: Flat, module: tree.Module):
        self.flat, self.module = whole, module
        self.pieces = pieces(whole, module)
        self.blocks = [Block() for _ in self.pieces]
        self.carried: list[list[str]] = [[] for _ in self.pieces]
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.types: dict[str, Attribute] = {}
        file = module.source.filename if module.source else "<ptx>"
        self.file = StringAttr(file)

    def region(self) -> Region:
        successors = [piece.successors for piece in self.pieces]
        before = predecessors(self.pieces)
        above = dominators(successors, before)
        begins = self._place_arguments(successors, before, above)
        held: list[dict[str, SSAValue]] = [{} for _ in self.pieces]
        for at in order(successors):
            values = dict(held[above[at]]) if at else self._undefined(begins[0])
            block = self.blocks[at]
            for name in self.carried[at]:
                value = block.insert_arg(self.types[name], len(block.args))
                value.name_hint = _hint(name)
                values[name] = value
            for step in self.pieces[at].steps:
                block.add_op(self._step(step, values))
            held[at] = values
        for at, piece in enumerate(self.pieces):
            self.blocks[at].add_op(self._end(piece, held[at]))
        return Region(self.blocks)

    # --- where values meet --------------------------------------------------------------------

    def _place_arguments(
        self,
        successors: Sequence[Sequence[int]],
        before: Sequence[Sequence[int]],
        above: Sequence[int],
    ) -> list[int]:
        """Decides which registers each block takes; those live at the begin of every block."""
        used, written = [0] * len(self.pieces), [0] * len(self.pieces)
        definitions: dict[str, set[int]] = {}
        for at, piece in enumerate(self.pieces):
            for step in piece.steps:
                if isinstance(step, tree.Pragma):
                    continue
                results, inputs = self._registers(step)
                if self._keeps(step):
                    inputs = [*inputs, *results]
                if step.guard is not None:
                    self._bit(step.guard.register.text, step.guard.at)
                for name in inputs:
                    used[at] |= self._bit(name, step.at) & ~written[at]
                for name in results:
                    written[at] |= self._bit(name)
                    definitions.setdefault(name, set()).add(at)
            if piece.guard is not None:
                used[at] |= self._bit(piece.guard.register.text, piece.guard.at) & ~written[at]
        begins, _ = live(successors, used, written)
        frontier = frontiers(above, before)
        for name, places in definitions.items():
            for at in sorted(meetings(sorted({0, *places}), frontier)):
                if begins[at] & self._bit(name):
                    self.carried[at].append(name)
        return begins

    def _undefined(self, live_in: int) -> dict[str, SSAValue]:
        """Registers that some way reads before it writes them."""
        values: dict[str, SSAValue] = {}
        for number, name in enumerate(self.names):
            if live_in >> number & 1:
                op = ptx.UndefinedOp(self.types[name])
                op.value.name_hint = _hint(name)
                self.blocks[0].add_op(op)
                values[name] = op.value
        return values

    def _bit(self, name: str, at: int = -1) -> int:
        if name not in self.numbers:
            kind = self.flat.kind(name)
            if kind is None:
                raise refusal(self.module, at, f"the register {name} is not declared")
            if kind not in _TYPES:
                raise refusal(self.module, at, f"registers of type .{kind} are not lifted")
            self.numbers[name] = len(self.names)
            self.names.append(name)
            self.types[name] = _TYPES[kind]
        return 1 << self.numbers[name]

    # --- instructions -------------------------------------------------------------------------

    def _registers(self, step: tree.Instruction) -> tuple[list[str], list[str]]:
        """(written, read), the guard too, in the order in which they stand."""
        results: list[str] = []
        inputs: list[str] = []
        for index, operand in enumerate(step.operands):
            into = results if index == 0 and writes(step) else inputs
            for node in walk(operand):
                if isinstance(node, tree.Name) and self.flat.kind(node.text) is not None:
                    into.append(node.text)
        if step.guard is not None:
            inputs.append(step.guard.register.text)
        return results, inputs

    def _keeps(self, step: tree.Instruction) -> bool:
        """Whether what its results held before may show in what they hold after."""
        row = row_of(step).opcode
        return step.guard is not None or (row is not None and row.accumulates)

    def _step(self, step: tree.Instruction | tree.Pragma, values: dict[str, SSAValue]) -> Operation:
        if isinstance(step, tree.Pragma):
            return ptx.TextOp(write_node(step))
        results, inputs = self._registers(step)
        guard = None
        if step.guard is not None:
            guard = self._guard(step.guard, values)
            inputs.pop()
        read = list(dict.fromkeys(inputs))
        places = {name: f"${len(results) + i}" for i, name in enumerate(read)}
        count = iter(range(len(results)))

        def placed(node: tree.Node, first: bool) -> tree.Node:
            if not isinstance(node, tree.Name) or self.flat.kind(node.text) is None:
                return node
            return tree.Name(f"${next(count)}" if first else places[node.text])

        operands = tuple(
            transform(operand, lambda n, first=(i == 0 and bool(results)): placed(n, first))
            for i, operand in enumerate(step.operands)
        )
        statement = replace(step, guard=None, operands=operands)
        negated = step.guard is not None and step.guard.negated
        op = ptx.InstructionOp(
            write_node(statement).removesuffix(";"),
            [self._value(name, values, step.at) for name in read],
            [self.types[name] for name in results],
            before=[values[name] for name in results] if self._keeps(step) else (),
            predicate=None if negated else guard,
            inverse=guard if negated else None,
        )
        op.location = self._place(step.at)
        for name, value in zip(results, op.outputs, strict=True):
            value.name_hint = _hint(name)
            values[name] = value
        return op

    def _guard(self, guard: tree.Guard, values: dict[str, SSAValue]) -> SSAValue:
        found = self._value(guard.register.text, values, guard.at)
        if found.type != i1:
            raise refusal(self.module, guard.at, f"{guard.register.text} is no predicate")
        return found

    def _value(self, name: str, values: dict[str, SSAValue], at: int) -> SSAValue:
        found = values.get(name)
        if found is None:
            raise refusal(self.module, at, f"the register {name} is not declared")
        return found

    def _place(self, at: int) -> FileLineColLoc:
        line, column = self.module.source.place(at) if self.module.source else (0, 0)
        return FileLineColLoc(self.file, IntAttr(line), IntAttr(column))

    # --- ways on ------------------------------------------------------------------------------

    def _end(self, piece: Piece, values: dict[str, SSAValue]) -> Operation:
        if piece.end is not None:
            return ptx.EndOp(piece.end.mnemonic)
        if piece.guard is None or piece.taken == piece.after:
            (to,) = dict.fromkeys(piece.successors)
            op: Operation = cf.BranchOp(self.blocks[to], *self._given(to, values))
        else:
            assert piece.taken is not None
            assert piece.after is not None
            condition = self._guard(piece.guard, values)
            ways = [piece.taken, piece.after]
            then, otherwise = reversed(ways) if piece.guard.negated else ways
            op = cf.ConditionalBranchOp(
                condition,
                self.blocks[then],
                self._given(then, values),
                self.blocks[otherwise],
                self._given(otherwise, values),
            )
        if piece.branch is not None and "uni" in piece.branch.opcode:
            op.attributes["ptx.uni"] = UnitAttr()
        return op

    def _given(self, to: int, values: dict[str, SSAValue]) -> list[SSAValue]:
        return [values[name] for name in self.carried[to]]


def _hint(name: str) -> str | None:
    """A register's name as that of a value."""
    text = name.lstrip("%").replace("$", "_")
    return text if text and not text[0].isdigit() else None
