"""Modules of functions with heads of their own, blocks as labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import cf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.ptx.foreign import items_of
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail
from fragir.passes.writer.blocks import Sharing, crossing, ways
from fragir.passes.writer.kernel import KernelWriter
from fragir.passes.writer.literals import register_form
from fragir.passes.writer.text import Names, file_directives
from fragir.ptx import tree
from fragir.ptx.visit import walk
from fragir.ptx.writer import write_node


def target_of(module: ModuleOp) -> str:
    """The architecture that its text names; FragirError where it names none."""
    for op in module.ops:
        if isinstance(op, ptx.TextOp):
            for item in items_of(op.text.data):
                if isinstance(item, tree.Target):
                    return item.words[0]
    raise FragirError("the module names no target", hint='write ptx.text ".target sm_90a"')


def write_foreign(
    module: ModuleOp, *, comments: bool = False, files: dict[str, int] | None = None
) -> str:
    """The PTX of a module of `ptx.text` and `ptx.function`."""
    target = target_of(module)
    parts: list[str] = []
    for op in module.ops:
        if isinstance(op, ptx.TextOp):
            parts += [write_node(item) + "\n" for item in items_of(op.text.data)]
        elif isinstance(op, ptx.FunctionOp):
            parts.append(_function(op, target, comments, files))
        else:
            fail(op, f"{op.name} does not stand beside ptx.function")
    if files:
        parts.append("\n" + file_directives(files))
    return "".join(parts)


def _function(op: ptx.FunctionOp, target: str, comments: bool, files: dict[str, int] | None) -> str:
    function = op.function
    text = BlocksWriter(target, comments, files)
    text.write(op)
    if text.shared or text.local or text.externs or text.constants():
        fail(op, "it has memory or functions that its head and `variables` do not declare")
    head, _, _ = write_node(function).partition("\n{")
    variables = function.body.items if function.body is not None else ()
    lines = [f"\n{head}", "{"]
    lines += [f"    {line}" for line in text.registers.declarations()]
    lines += [f"    {write_node(item)}" for item in variables]
    return "\n".join([*lines, "", *text.lines, "}\n"])


class BlocksWriter(KernelWriter):
    """Writes several blocks; ways on are branches, what they give is copied if it must be."""

    def __init__(self, target: str, comments: bool, files: dict[str, int] | None = None):
        super().__init__(target, "memory", comments, files)
        self._labels: dict[Block, str] = {}
        self._used: set[Block] = set()
        self._assigned: set[SSAValue] = set()
        self._taken: set[str] = set()  # names that the head and the variables have
        self._apart: list[tuple[str, Block, Sequence[SSAValue]]] = []

    def write(self, op: ptx.FunctionOp) -> None:
        blocks = list(op.body.blocks)
        own = op.function
        self._taken = {node.text for node in walk(own) if isinstance(node, tree.Name)}
        self._labels = {block: self._label() for block in blocks}
        self._assign(op)
        texts: list[tuple[Block, list[str]]] = []
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            self.lines = []
            self.block(block)
            self._ways(block, following)
            texts.append((block, self.lines))
        self.lines = []
        for block, lines in texts:
            if block in self._used:
                self.label(self._labels[block])
            self.lines += lines
        for label, to, given in self._apart:
            self.label(label)
            self._give(to, given)
            self.emit("bra", self._labels[to])

    def _assign(self, op: ptx.FunctionOp) -> None:
        """Registers for what several blocks know, and for what shares one."""
        shared = {value: names for value, names in self._shared_values(op)}
        for value in crossing(op.body):
            names = shared.get(value) or self._fresh_names(value)
            self.names[value] = names
            shared[value] = names
        self.reserved.update(shared)
        self._assigned.update(shared)

    def _shared_values(self, op: ptx.FunctionOp) -> Iterator[tuple[SSAValue, Names]]:
        for members in Sharing(op.body).classes():
            names = self._fresh_names(members[0])
            for value in members:
                yield value, names

    def _fresh_names(self, value: SSAValue) -> Names:
        width, count, hint = register_form(value.type)
        found: list[str] = []
        while len(found) < count:
            name = self.registers.fresh_register(width, hint)
            if name not in self._taken:
                found.append(name)
        return tuple(found)

    def take_over(self, value: SSAValue, op: Operation) -> Names | None:
        """As of any text, but not of what shares its registers: others may be written there."""
        return None if value in self._assigned else super().take_over(value, op)

    def _label(self) -> str:
        while (name := self.labels.fresh_label("L")) in self._taken:
            pass
        return name

    def define(self, value: SSAValue) -> Names:
        """As of any text, but numbered: a register that was a text's says nothing by its name."""
        if value not in self.reserved:
            self.reserved[value] = self._fresh_names(value)
        return super().define(value)

    def _ways(self, block: Block, following: Block | None) -> None:
        last = block.last_op
        uni = ".uni" if last is not None and "ptx.uni" in last.attributes else ""
        if isinstance(last, cf.BranchOp):
            self._give(last.successor, last.arguments)
            self._go(last.successor, following, uni)
        elif isinstance(last, cf.ConditionalBranchOp):
            self._choose(last, following, uni)
        elif not isinstance(last, ptx.EndOp):
            raise FragirError("a block of ptx.function ends with cf.br, cf.cond_br or ptx.end")

    def _choose(self, op: cf.ConditionalBranchOp, following: Block | None, uni: str) -> None:
        guard = self.register(op.cond)
        then, otherwise = ways_of(op)
        if then[0] is following and not self._moves(*then):
            guard, then, otherwise = f"!{guard}", otherwise, then
        label = self._labels[then[0]]
        if self._moves(*then):
            label = self._label()
            self._apart.append((label, *then))
        self._used.add(then[0])
        self.emit(f"bra{uni}", label, guard=guard)
        self._give(*otherwise)
        self._go(otherwise[0], following, "")

    def _go(self, to: Block, following: Block | None, uni: str) -> None:
        if to is not following:
            self._used.add(to)
            self.emit(f"bra{uni}", self._labels[to])

    def _moves(self, to: Block, given: Sequence[SSAValue]) -> list[tuple[str, str, int]]:
        return [
            (target, source, register_form(argument.type)[0])
            for argument, value in zip(to.args, given, strict=True)
            for target, source in zip(self.names[argument], self.names[value], strict=True)
            if target != source
        ]

    def _give(self, to: Block, given: Sequence[SSAValue]) -> None:
        self.parallel_move(self._moves(to, given))


def ways_of(op: cf.ConditionalBranchOp) -> list[tuple[Block, Sequence[SSAValue]]]:
    """The two ways of a branch, the one that is taken first."""
    block = op.parent
    assert block is not None
    return ways(block)
