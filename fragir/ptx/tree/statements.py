"""Statements (PTX ISA 9.2, section 4.3), declarations and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from fragir.errors import short_text
from fragir.ptx.node import Frozen, node, position
from fragir.ptx.tree.operands import Integer, Name, Operand, Sink, String


@node
class Comment(Frozen):
    """`// ...`, `/* ... */` or `# 7 "file.cu"`, whole.

    `trailing`: it stands on the line of what is before it.

    A comment within a statement comes after that statement, one in a function's head before the
    function.
    """

    text: str
    trailing: bool = False
    at: int = position()


@node
class Guard(Frozen):
    """`@%p1` or `@!%p1` (9.3)."""

    register: Name
    negated: bool = False
    at: int = position()


@node
class Instruction(Frozen):
    """`@%p1 ld.param.u64 %rd1, [k_param_0];`: the opcode is split at its dots."""

    guard: Guard | None
    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    at: int = position()

    def __repr__(self) -> str:
        words = [getattr(operand, "text", type(operand).__name__) for operand in self.operands]
        guard = "" if self.guard is None else "guarded "
        return short_text(f"<{guard}{self.mnemonic} {', '.join(words)}>")

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)


@node
class Label(Frozen):
    """`$L__BB0_2:`. What it names is the next statement."""

    name: Name
    at: int = position()


@node
class Block(Frozen):
    """`{ ... }`: a scope of its own for registers, variables and labels. `end` is where `}` is."""

    items: tuple[Statement, ...]
    at: int = position()
    end: int = position()

    def __repr__(self) -> str:
        return f"<block of {len(self.items)} statements>"


class UnreadBlock(Block):
    """A body that is read when its items are first asked for, which makes it a `Block`.

    In place of the items it is made with what reads them: a function without parameters, which
    may raise; then it is asked again the next time.
    """

    __slots__ = ()

    def __init__(self, read: Callable[[], tuple[Statement, ...]], at: int, end: int) -> None:
        super().__init__(cast(Any, read), at, end)

    @property
    def items(self) -> tuple[Statement, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        slot: Any = Block.__dict__["items"]
        read: Any = slot.__get__(self)
        if isinstance(read, tuple):  # another thread was quicker
            return cast("tuple[Statement, ...]", read)
        made = cast("Callable[[], tuple[Statement, ...]]", read)()
        slot.__set__(self, made)
        object.__setattr__(self, "__class__", Block)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.items == other.items

    def __hash__(self) -> int:
        return hash(Block(self.items))

    def __repr__(self) -> str:
        return f"<block of {self.end - self.at} characters>"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Block, (self.items, self.at, self.end)


@node
class Variable(Frozen):
    """One name of a declaration: `%r<12>`, `a[4][8] = {...}`, `s[]`.

    `count` is the number in `%r<12>` (the names `%r0` to `%r11`); a dimension is None where the
    brackets are empty. The name is `_` in prototypes.
    """

    name: Name
    count: Integer | None = None
    dimensions: tuple[Operand | None, ...] = ()
    initializer: Operand | None = None
    at: int = position()


@node
class Attribute(Frozen):
    """`.attribute(.managed)`, `.attribute(.unified(0x1, 0x2))` (5.4.8).

    `joined`: it stands in the brackets of the attribute before it.
    """

    name: str
    values: tuple[Operand, ...] = ()
    joined: bool = False
    at: int = position()


@node
class Pointer(Frozen):
    """`.ptr .global .align 16` of a kernel's parameter (5.1.6.3)."""

    space: str | None = None
    align: Integer | None = None
    at: int = position()


@node
class Declaration(Frozen):
    """`.visible .global .align 16 .v4 .f32 a, b[4];`, `.reg .b32 %r<5>;`, or one parameter.

    `linkage`: extern, visible, weak or common, if any. `space`: reg, const, global, local, param,
    shared, tex. `vector`: v2, v4 or None. `bank`: of `.const[2]`, which PTX 2.2 gave up.
    A parameter has exactly one variable.
    """

    linkage: tuple[str, ...]
    space: str
    align: Integer | None
    vector: str | None
    type: str
    variables: tuple[Variable, ...]
    attributes: tuple[Attribute, ...] = ()
    pointer: Pointer | None = None
    bank: Integer | None = None
    at: int = position()

    def __repr__(self) -> str:
        names = ", ".join(variable.name.text for variable in self.variables)
        return short_text(f"<.{self.space} .{self.type} {names}>")


@node
class FunctionDirective(Frozen):
    """`.maxntid 128, 1, 1`, `.minnctapersm 2`, `.noreturn` in a function's head (11.4)."""

    name: str
    values: tuple[Operand, ...] = ()
    at: int = position()


@node
class Pragma(Frozen):
    """`.pragma "nounroll";`, in a function's head too."""

    values: tuple[String, ...]
    at: int = position()


@node
class Function(Frozen):
    """A kernel (`kind` is `entry`) or a device function (`func`); without a body, its prototype.

    Of `returns` and `parameters`, `()` are empty brackets and None is none at all, which means the
    same.
    """

    linkage: tuple[str, ...]
    kind: str
    name: Name
    returns: tuple[Declaration, ...] | None
    parameters: tuple[Declaration, ...] | None
    directives: tuple[FunctionDirective | Pragma, ...]
    body: Block | None
    attributes: tuple[Attribute, ...] = ()
    at: int = position()

    def __repr__(self) -> str:
        body = "no body" if self.body is None else f"{len(self.body.items)} statements"
        return short_text(f"<{self.kind} {self.name.text}: {body}>")


@node
class CallPrototype(Frozen):
    """`.callprototype (.param .b32 _) _ (.param .b64 _);` behind its label (11.2.2).

    `()` and None are as in `Function`.
    """

    returns: tuple[Declaration, ...] | None
    name: Name | Sink
    parameters: tuple[Declaration, ...] | None
    directives: tuple[FunctionDirective, ...] = ()
    at: int = position()


@node
class BranchTargets(Frozen):
    """`.branchtargets L1, L2;` behind its label (11.2.1).

    `counts`: those of `L<3>`, which is L0, L1 and L2; empty if no label has one.
    """

    labels: tuple[Name, ...]
    counts: tuple[Integer | None, ...] = ()
    at: int = position()


@node
class CallTargets(Frozen):
    """`.calltargets f1, f2;` behind its label (11.2.3)."""

    functions: tuple[Name, ...]
    at: int = position()


@node
class SectionName(Frozen):
    """A section named as a value: `.debug_abbrev`, in `.debug_str+12` with its offset."""

    text: str
    offset: Integer | None = None
    at: int = position()


@node
class Loc(Frozen):
    """`.loc 1 15 3, function_name $L__info_string0, inlined_at 1 10 5` (11.5.2)."""

    file: Integer
    line: Integer
    column: Integer
    function: Name | SectionName | None = None
    function_offset: Integer | None = None
    inlined_at: tuple[Integer, Integer, Integer] | None = None
    at: int = position()


Statement = (
    Instruction
    | Label
    | Declaration
    | Block
    | Loc
    | Pragma
    | BranchTargets
    | CallTargets
    | CallPrototype
    | Comment
)
