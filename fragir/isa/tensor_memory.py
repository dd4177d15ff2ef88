"""`tcgen05.ld`, `tcgen05.st`: between registers and tensor memory (PTX ISA 9.2, 9.7.16.8)."""

from __future__ import annotations

from collections.abc import Iterator

from fragir.isa import fragments, target_rows
from fragir.isa.model import Form, Instruction, Lowering, Operand, Registers, Types
from fragir.isa.spelling import aliases, mnemonic
from fragir.isa.target_rows import BLACKWELL_SERVER
from fragir.ptx.targets import targets_with

# Shape -> registers of one repetition.
SHAPES: dict[str, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
_PACK = {"tcgen05.ld": "pack::16b", "tcgen05.st": "unpack::16b"}
_REDUCING = targets_with("reducing")
_REDUCED_SHAPES = ("32x32b", "16x32bx2")
_FLOAT_FLAGS = (
    frozenset[str](),
    frozenset(("abs",)),
    frozenset(("NaN",)),
    frozenset(("abs", "NaN")),
)


def repetitions(shape: str) -> tuple[int, ...]:
    """The legal .xN: up to 128 registers."""
    most = 128 // SHAPES[shape]
    return tuple(n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n <= most)


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form of the families, or of one, or those of this type."""
    for form in _forms():
        if family in ("", form.family) and a in ("", *form.types):
            yield form


def _forms() -> Iterator[Form]:
    for shape in SHAPES:
        for n in repetitions(shape):
            for family, pack in _PACK.items():
                yield Form(family, shape, (), ("b32",), frozenset((f"x{n}",)))
                yield Form(family, shape, (), ("b32",), frozenset((f"x{n}", pack)))
    for shape in _REDUCED_SHAPES:
        for n in repetitions(shape)[1:]:
            for operation in ("min", "max"):
                flags = frozenset((f"x{n}", operation))
                for element in ("u32", "s32"):
                    yield Form("tcgen05.ld.red", shape, (), (element,), flags)
                for extra in _FLOAT_FLAGS:
                    yield Form("tcgen05.ld.red", shape, (), ("f32",), flags | extra)


def _is_legal(form: Form, flags: frozenset[str], n: int) -> bool:
    if form.family in _PACK:
        return form.types == ("b32",) and flags <= {_PACK[form.family]}
    if form.shape not in _REDUCED_SHAPES or n < 2:
        return False
    extra = flags - {"min", "max"}
    if len(flags) - len(extra) != 1:
        return False
    return (form.types == ("f32",) and extra in _FLOAT_FLAGS) or (
        form.types in (("u32",), ("s32",)) and not extra
    )


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    if form.shape not in SHAPES or form.layouts:
        return None
    for n in repetitions(form.shape):
        if f"x{n}" in form.flags and _is_legal(form, form.flags - {f"x{n}"}, n):
            return _instruction(form, n)
    return None


def _instruction(form: Form, n: int) -> Instruction:
    reducing = form.family == "tcgen05.ld.red"
    available = target_rows.versions(
        _REDUCING if reducing else BLACKWELL_SERVER, "8.8" if reducing else "8.6"
    )
    lowering: dict[str, Lowering] = dict.fromkeys(available, "native")
    element = form.types[0]
    return Instruction(
        mnemonic=mnemonic(form),
        family=form.family,
        shape=(int(form.shape.partition("x")[0]), SHAPES[form.shape], n),
        types=Types(a=element, d=element),
        operands=_operands(form, n),
        targets=available,
        lowering=lowering,
        form=form,
        tail=("half-split-offset",) if form.shape == "16x32bx2" else (),
        aliases=aliases(form),
    )


def _operands(form: Form, n: int) -> dict[str, Operand]:
    packed = bool(form.flags & set(_PACK.values()))
    layout = fragments.tensor_memory(form.shape, n, packed)
    any32 = ("b32", "u32", "s32", "f32")
    held = Registers(n * SHAPES[form.shape], "b32", "fragment", any32)
    address = Registers(1, "b32", "address", ("b32", "u32", "s32"))
    element = "b16" if packed else form.types[0]
    operands = [
        Operand("registers", held, element, layout, layout.shape),
        Operand("address", address, "", None, ()),
    ]
    if form.family == "tcgen05.ld.red":
        one = Registers(1, "b32", "fragment", any32)
        operands.append(Operand("reduced", one, element, None, ()))
    return {operand.name: operand for operand in operands}
