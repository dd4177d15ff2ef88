"""The table that is in force: what the compiler, the drawings and the command line ask.

`register`, `remove` and `register_target` put another table into force, `using` does for a while;
each counts from the next question on, whatever was compiled before. It is one table for the whole
process, all threads. What is worked out from the table and worth keeping is a function under
`per_table`: the table in force keeps its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar, TypeVarTuple, cast

from fragir.errors import FragirError, kind_of
from fragir.isa.model import Form, Instruction
from fragir.isa.table import Table
from fragir.isa.target_rows import Target
from fragir.ptx import machines

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

_KEPT = 4096  # answers of one function; names come from users, so there is no end to them
_current = Table()
_uses = 0


def current() -> Table:
    """The table that is in force."""
    return _current


def use(table: Table) -> None:
    """Put a table into force."""
    global _current, _uses
    if not isinstance(cast("object", table), Table):
        raise FragirError(f"a table is a Table, not {kind_of(table)}")
    _current = table
    _uses += 1
    machines.declare(table.machines())


@contextmanager
def using(table: Table) -> Generator[Table]:
    """`with using(current().without(mnemonic)): ...`: a table in force for a while."""
    before = _current
    use(table)
    try:
        yield table
    finally:
        use(before)


def per_table(function: Callable[[*Ts], R]) -> Callable[[*Ts], R]:
    """A cache of what follows from the table: each table keeps its own answers.

    Arguments are given by position. An answer during whose making another table came into force
    is not kept.
    """

    @wraps(function)
    def ask(*args: *Ts) -> R:
        held = _current.answers.get(function)
        if held is None:
            held = _current.answers.setdefault(function, {})
        try:
            return held[args]
        except KeyError:
            pass
        before = _uses
        answer = function(*args)
        if before == _uses:
            if len(held) >= _KEPT:
                held.clear()
            held[args] = answer
        return answer

    return ask


def register(instruction: Instruction) -> None:
    """Add an instruction, or override the one with the same mnemonic, in this process.

    It counts from the next question on, for the compiler too, whatever was compiled before.
    """
    if not isinstance(cast("object", instruction), Instruction):
        raise FragirError(f"register takes an Instruction, not {kind_of(instruction)}")
    use(_current.with_instruction(instruction))


def unregister(mnemonic: str) -> None:
    """Take back what `register` or `remove` did; an error where neither did anything."""
    _check_text(mnemonic)
    use(_current.as_ruled(mnemonic))


def remove(mnemonic: str) -> None:
    """Take an instruction away, whoever gave it; `UnknownInstruction` where there is none."""
    use(_current.without(mnemonic))


def register_target(target: Target) -> None:
    """Add a target, or override one that was added; FragirError where it cannot be one.

    From the next question on the compiler, the command line, the emulator's limits and ptxas's
    `--gpu-name` know it.
    """
    if not isinstance(cast("object", target), Target):
        raise FragirError(f"register_target takes a Target, not {kind_of(target)}")
    use(_current.with_target(target))


def unregister_target(name: str) -> None:
    """Take back what `register_target` did; FragirError where it did nothing."""
    _check_text(name)
    use(_current.without_target(name))


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise FragirError(f"a mnemonic or target is a str, not {kind_of(text)}")


def lookup(mnemonic: str, *, target: str | None = None) -> Instruction:
    """The instruction of a mnemonic in any spelling that ptxas takes.

    Raises `UnknownInstruction`, which names the part that is wrong and the nearest legal
    mnemonics; with `target` also where the instruction does not exist there.
    """
    return _current.lookup(mnemonic, target=target)


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    return _current.resolve(form)


def instructions(*, target: str | None = None) -> Iterator[Instruction]:
    """The whole table, registered instructions included; with `target` only what it has."""
    return _current.instructions(target=target)


def find(
    family: str,
    *,
    shape: str | tuple[int, ...],
    a: str = "",
    b: str = "",
    c: str = "",
    d: str = "",
    scale: str = "",
    layouts: tuple[str, str] | None = None,
    satfinite: bool = False,
    kind: str = "",
    scale_vec: str = "",
    rounding: str = "",
    operation: str = "",
    num: int = 0,
    trans: bool = False,
    type: str = "",
    packed: bool = False,
) -> Instruction:
    """The instruction of a family with these properties; `UnknownInstruction` if there is none.

    `family` is one of `FAMILIES`, `shape` "m16n8k16" or (16, 8, 16). `b` defaults to `a`, `c` to
    `d`. `layouts` are the storage orders of A and B (default row, col). `operation` is "xor" or
    "and" (b1), "min" or "max" (tcgen05.ld.red), `scale_vec` "1X", "2X" or "4X", `kind` "f8f6f4",
    "mxf4", ... Matrix copies take `num`, `trans` and `type`, tcgen05 `num`, `packed` and `type`.
    """
    token = shape if isinstance(shape, str) else _shape(shape)
    flags = {flag for flag, on in (("satfinite", satfinite), ("trans", trans)) if on}
    flags |= {text for text in (rounding, operation) if text}
    if operation in ("xor", "and"):
        flags.add("popc")
    if kind:
        flags.add(f"kind::{kind}")
    if kind.startswith("mx"):
        flags.add("block_scale")
    if scale_vec:
        flags.add(f"scale_vec::{scale_vec}")
    if num:
        flags.add(f"x{num}")
    if packed:
        flags.add("pack::16b" if family == "tcgen05.ld" else "unpack::16b")
    types = (d, a, b or a) if family.startswith("wgmma") else (d, a, b or a, c or d)
    types = tuple(t for t in (*types, scale, type) if t)
    orders = (layouts or ("row", "col")) if family.startswith("mma") else ()
    return _current.of(Form(family, token, orders, types, frozenset(flags)))


def _shape(shape: tuple[int, ...]) -> str:
    return "".join(f"{letter}{size}" for letter, size in zip("mnk", shape, strict=False))
