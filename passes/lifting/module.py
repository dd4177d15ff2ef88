"""PTX text as a module of the `ptx` dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import cf
from xdsl.dialects.builtin import (
    BFloat16Type,
    FileLineColLoc,
    Float16Type,
    IntAttr,
    ModuleOp,
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
from fragir.passes.lifting.scopes import Flat, flat, refusal
from fragir.passes.settling import rounds
from fragir.ptx import tree
from fragir.ptx.opcodes.table import find_row as row_of
from fragir.ptx.reader import parse
from fragir.ptx.visit import transform, walk
from fragir.ptx.writer import write_node

# -- build -----------------------------------------------------------------------------------------
# A function's pieces as blocks of SSA values.
#
# Cytron, Ferrante, Rosen, Wegman and Zadeck, "Efficiently computing static single assignment form"
# (1991), pruned by liveness.

# -- blocks ----------------------------------------------------------------------------------------
# Straight pieces of a function, and where each goes on.

#: Opcodes that end a piece where they have no guard.
ENDS = frozenset(("ret", "exit", "trap"))


@dataclass
class Piece:
    """Instructions without a label among them.

    `guard`: of the branch at its end, whose way is `taken`; `after`: where it goes on otherwise.
    Without both it ends with `end`, the opcode of its last instruction.
    """

    steps: list[tree.Instruction | tree.Pragma] = field(
        default_factory=list[tree.Instruction | tree.Pragma]
    )
    branch: tree.Instruction | None = None
    taken: int | None = None
    after: int | None = None
    end: tree.Instruction | None = None

    @property
    def guard(self) -> tree.Guard | None:
        return None if self.branch is None else self.branch.guard

    @property
    def successors(self) -> list[int]:
        return [s for s in (self.taken, self.after) if s is not None]


def pieces(flat: Flat, module: tree.Module) -> list[Piece]:
    """The pieces that can be reached, in the order of the text; the first is the entry."""
    found = [Piece()]
    labels: dict[str, int] = {}
    targets: list[tuple[Piece, str, int]] = []
    closed = False  # whether the last piece has ended
    for step in flat.steps:
        if isinstance(step, tree.Label):
            if closed or found[-1].steps or len(found) == 1:
                _open(found, closed)
                closed = False
            labels[step.name.text] = len(found) - 1
            continue
        if closed:  # nothing leads here but a label
            _open(found, closed)
            closed = False
        piece = found[-1]
        if isinstance(step, tree.Pragma):
            piece.steps.append(step)
            continue
        name = step.opcode[0]
        if name == "brx":
            raise refusal(
                module, step.at, "indirect branches are not lifted", "write a chain of branches"
            )
        if name == "bra":
            (label,) = step.operands if len(step.operands) == 1 else (None,)
            if not isinstance(label, tree.Name):
                raise refusal(module, step.at, f"{step.mnemonic} takes one label")
            targets.append((piece, label.text, step.at))
            piece.branch = step
            if step.guard is None:
                closed = True
            else:
                _open(found, False)
        elif name in ENDS and step.guard is None:
            piece.end = step
            closed = True
        else:
            piece.steps.append(step)
    if not closed:  # the end of the body returns
        found[-1].end = tree.Instruction(None, ("ret",), ())
    for piece, label, at in targets:
        if label not in labels:
            raise refusal(module, at, f"the label {label} is not declared")
        piece.taken = labels[label]
    return _reachable(found)


def _open(found: list[Piece], closed: bool) -> None:
    if not closed:
        found[-1].after = len(found)
    found.append(Piece())


def _reachable(found: list[Piece]) -> list[Piece]:
    reached, work = {0}, [0]
    while work:
        for to in found[work.pop()].successors:
            if to not in reached:
                reached.add(to)
                work.append(to)
    kept = sorted(reached)
    numbers = {old: new for new, old in enumerate(kept)}
    for old in kept:
        piece = found[old]
        piece.taken = None if piece.taken is None else numbers[piece.taken]
        piece.after = None if piece.after is None else numbers[piece.after]
    return [found[old] for old in kept]


def predecessors(found: list[Piece]) -> list[list[int]]:
    """Where each piece is come to from."""
    before: list[list[int]] = [[] for _ in found]
    for at, piece in enumerate(found):
        for to in dict.fromkeys(piece.successors):
            before[to].append(at)
    return before


# -- dominance -------------------------------------------------------------------------------------
# Where the definitions of a register meet: dominators, and their frontiers.
#
# Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001).


def order(successors: Sequence[Sequence[int]]) -> list[int]:
    """Reverse postorder from block 0."""
    found: list[int] = []
    seen = {0}
    stack = [(0, iter(successors[0]))]
    while stack:
        block, rest = stack[-1]
        step = next((s for s in rest if s not in seen), None)
        if step is None:
            stack.pop()
            found.append(block)
        else:
            seen.add(step)
            stack.append((step, iter(successors[step])))
    return found[::-1]


def dominators(successors: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> list[int]:
    """The immediate dominator of every block; that of block 0 is itself."""
    ordered = order(successors)
    place = {block: at for at, block in enumerate(ordered)}
    above = {0: 0}

    def meet(a: int, b: int) -> int:
        while a != b:
            while place[a] > place[b]:
                a = above[a]
            while place[b] > place[a]:
                b = above[b]
        return a

    for _ in rounds("the dominators of blocks", 2 + len(successors)):
        changed = False
        for block in ordered[1:]:
            known = [p for p in before[block] if p in above]
            made = known[0]
            for other in known[1:]:
                made = meet(made, other)
            if above.get(block) != made:
                above[block] = made
                changed = True
        if not changed:
            break
    return [above[block] for block in range(len(successors))]


def frontiers(above: Sequence[int], before: Sequence[Sequence[int]]) -> list[set[int]]:
    """The blocks where what each block dominates ends. Nothing leads to block 0."""
    found: list[set[int]] = [set() for _ in above]
    for block, into in enumerate(before):
        if len(into) > 1:
            for runner in into:
                while runner != above[block]:
                    found[runner].add(block)
                    runner = above[runner]
    return found


def meetings(definitions: Iterable[int], frontier: Sequence[set[int]]) -> set[int]:
    """The blocks in which definitions in these blocks meet."""
    found: set[int] = set()
    work = list(definitions)
    while work:
        for block in frontier[work.pop()]:
            if block not in found:
                found.add(block)
                work.append(block)
    return found


# -- liveness --------------------------------------------------------------------------------------
# Which numbers (of registers, of values) are needed where a block begins and where it ends.


def live(
    successors: Sequence[Sequence[int]],
    used: Sequence[int],
    written: Sequence[int],
    at_end: Sequence[int] | None = None,
) -> tuple[list[int], list[int]]:
    """(live at the begin, live at the end) of every block, as sets of bits.

    `used`: read in a block before it is written there; `at_end`: read on the way out of it.
    """
    count = len(successors)
    begins, ends = [0] * count, list(at_end or [0] * count)
    before: list[list[int]] = [[] for _ in range(count)]
    for block, after in enumerate(successors):
        for to in after:
            before[to].append(block)
    work = list(range(count))
    waiting = set(work)
    while work:
        block = work.pop()
        waiting.discard(block)
        for to in successors[block]:
            ends[block] |= begins[to]
        found = used[block] | (ends[block] & ~written[block])
        if found != begins[block]:
            begins[block] = found
            for other in before[block]:
                if other not in waiting:
                    waiting.add(other)
                    work.append(other)
    return begins, ends


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
            values = dict(held[above[at]]) if at else self._undefined_values(begins[0])
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

    def _undefined_values(self, live_in: int) -> dict[str, SSAValue]:
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
            op: Operation = cf.BranchOp(self.blocks[to], *self._branch_values(to, values))
        else:
            assert piece.taken is not None
            assert piece.after is not None
            condition = self._guard(piece.guard, values)
            ways = [piece.taken, piece.after]
            then, otherwise = reversed(ways) if piece.guard.negated else ways
            op = cf.ConditionalBranchOp(
                condition,
                self.blocks[then],
                self._branch_values(then, values),
                self.blocks[otherwise],
                self._branch_values(otherwise, values),
            )
        if piece.branch is not None and "uni" in piece.branch.opcode:
            op.attributes["ptx.uni"] = UnitAttr()
        return op

    def _branch_values(self, to: int, values: dict[str, SSAValue]) -> list[SSAValue]:
        return [values[name] for name in self.carried[to]]


def _hint(name: str) -> str | None:
    """A register's name as that of a value."""
    text = name.lstrip("%").replace("$", "_")
    return text if text and not text[0].isdigit() else None


def lift(text: str, filename: str = "<ptx>") -> ModuleOp:
    """A module of functions whose registers are values and whose labels are blocks.

    Directives, variables and prototypes are kept as text; places in other sources and debugging
    sections are left out. FragirError, with its place, for text that is no PTX, and for what has no
    counterpart: indirect branches and calls, registers that are passed to functions.
    """
    module = parse(text, filename)
    operations: list[Operation] = []
    outside = {name for item in module.items for name in _names(item)}
    for item in module.items:
        if isinstance(item, tree.Function) and item.body is not None:
            operations.append(_function(item, module, outside))
        elif isinstance(
            item, tree.Target
        ):  # debugging sections are left out, so ptxas must not ask
            words = tuple(word for word in item.words if word != "debug")
            operations.append(ptx.TextOp(_line(tree.Target(words))))
        elif not isinstance(item, tree.Comment | tree.File | tree.Section | tree.Dwarf):
            operations.append(ptx.TextOp(_line(item)))
    return ModuleOp(operations)


def _function(function: tree.Function, module: tree.Module, outside: set[str]) -> ptx.FunctionOp:
    try:
        region, variables = body(function, module, outside)
    except RecursionError:
        raise refusal(module, function.at, f"{function.name.text} is nested too deeply") from None
    head = _line(replace(function, body=None)).removesuffix(";").rstrip()
    return ptx.FunctionOp(head, variables, region)


def _line(item: tree.Item) -> str:
    """The text of an item on one line: a break means no more than a blank, outside of strings."""
    return " ".join(write_node(item).split())


def _names(item: tree.Item) -> list[str]:
    match item:
        case tree.Function() | tree.Alias():
            return [item.name.text]
        case tree.Declaration():
            return [variable.name.text for variable in item.variables]
        case _:
            return []
