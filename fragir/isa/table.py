"""The instruction table: ask for one by its mnemonic, by what it does, or walk them all.

Nothing is generated ahead: `lookup` takes the mnemonic apart and asks the rules of its family,
so an answer costs some tens of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from fragir.errors import FragirError, kind_of
from fragir.isa import spelling
from fragir.isa.model import Form, Instruction, UnknownInstruction

# Family -> the module with its rules, imported when first asked.
_MODULES: dict[str, str] = {
    "mma": "dense",
    "mma.sp": "sparse",
    "mma.sp::ordered_metadata": "sparse",
    "wgmma": "warpgroup",
    "wgmma.sp": "warpgroup",
    "ldmatrix": "copies",
    "stmatrix": "copies",
    "movmatrix": "copies",
    "tcgen05.ld": "tensor_memory",
    "tcgen05.st": "tensor_memory",
    "tcgen05.ld.red": "tensor_memory",
}
FAMILIES = tuple(_MODULES)


class _Rules(Protocol):
    def forms(self) -> Iterator[Form]: ...
    def resolve(self, form: Form) -> Instruction | None: ...


@cache
def _rules(module: str) -> _Rules:
    return cast(_Rules, import_module(f"fragir.isa.{module}"))


P = ParamSpec("P")
R = TypeVar("R")

_registered: dict[str, Instruction] = {}
_generation = 0


def derived(function: Callable[P, R]) -> Callable[P, R]:
    """A cache of what follows from the table: an answer holds until a row is changed.

    Whatever asks the table and is cached has this decorator. The generation is part of the key,
    so that an answer that another thread is computing while a row is registered is not kept.
    """

    def asked(generation: int, *args: Any, **kwargs: Any) -> R:
        return cast(Callable[..., R], function)(*args, **kwargs)

    held = lru_cache(maxsize=4096)(asked)

    @wraps(function)
    def ask(*args: P.args, **kwargs: P.kwargs) -> R:
        return held(_generation, *args, **kwargs)

    return ask


def _changed() -> None:
    global _generation
    _generation += 1


def _canonical(mnemonic: str) -> str:
    """The spelling that `resolve` looks for; words that no family has stay as they are."""
    form = spelling.parse(mnemonic)
    return mnemonic if form is None else spelling.mnemonic(form)


def lookup(mnemonic: str, *, target: str | None = None) -> Instruction:
    """The instruction of a mnemonic in any spelling that ptxas takes.

    Raises `UnknownInstruction`, which names the part that is wrong and the nearest legal
    mnemonics; with `target` also where the instruction does not exist there.
    """
    _check_text(mnemonic)
    if target is not None:
        _check_text(target)
    found = _registered.get(mnemonic)
    if found is None:
        form = spelling.parse(mnemonic)
        if form is not None and spelling.complaint(mnemonic) is None:
            found = resolve(form)
    if found is None or (target is not None and target not in found.targets):
        from fragir.isa.nearest import unknown

        raise unknown(mnemonic, target, found)
    return found


@lru_cache(maxsize=4096)
def _by_rule(form: Form) -> Instruction | None:
    module = _MODULES.get(form.family)
    return _rules(module).resolve(form) if module is not None else None


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    if _registered:
        own = _registered.get(spelling.mnemonic(form))
        if own is not None:
            return own
    return _by_rule(form)


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
    form = spelling.normal(Form(family, token, orders, types, frozenset(flags)))
    found = resolve(form)
    if found is None:
        from fragir.isa.nearest import unknown

        raise unknown(spelling.mnemonic(form))
    return found


def _shape(shape: tuple[int, ...]) -> str:
    return "".join(f"{letter}{size}" for letter, size in zip("mnk", shape, strict=False))


def instructions(*, target: str | None = None) -> Iterator[Instruction]:
    """The whole table, registered instructions included; with `target` only what it has."""
    for form in forms():
        found = resolve(form)
        if found is not None and (target is None or target in found.targets):
            yield found
    rules = {spelling.mnemonic(form) for form in forms()} if _registered else set[str]()
    for mnemonic, found in _registered.items():
        if mnemonic not in rules and (target is None or target in found.targets):
            yield found


def forms() -> Iterator[Form]:
    """The canonical form of every instruction that the rules give."""
    for module in dict.fromkeys(_MODULES.values()):
        yield from _rules(module).forms()


def _check_text(mnemonic: object) -> None:
    if not isinstance(mnemonic, str):
        raise FragirError(f"a mnemonic or target is a str, not {kind_of(mnemonic)}")


def register(instruction: Instruction) -> None:
    """Add an instruction, or override the one with the same mnemonic, in this process.

    It counts from the next question on, for the compiler too, whatever was compiled before.
    """
    if not isinstance(cast("object", instruction), Instruction):
        raise FragirError(f"register takes an Instruction, not {kind_of(instruction)}")
    _registered[_canonical(instruction.mnemonic)] = instruction
    _changed()


def unregister(mnemonic: str) -> None:
    """Take back what `register` did; an error where nothing is registered."""
    _check_text(mnemonic)
    if _registered.pop(_canonical(mnemonic), None) is None:
        raise UnknownInstruction(f"{mnemonic!r} was not registered")
    _changed()


def added(family: str) -> Iterator[Form]:
    """The forms in a family of registered instructions that the rules do not have."""
    for mnemonic in _registered:
        form = spelling.parse(mnemonic)
        if form is not None and form.family == family and _by_rule(form) is None:
            yield form
