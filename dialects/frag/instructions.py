"""The instructions of products by short names, element types and words, and why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fragir import isa
from fragir.dialects.elements import NARROW_FLOATS, multiplied_as
from fragir.errors import FragirError
from fragir.isa.model import FLOAT8_6_4
from fragir.isa.products import (
    DENSE,
    PACKED,
    WARPGROUP,
    accumulators,
    blocks,
    by_width,
    multiplied,
    multiplies,
    wgmma_k,
)
from fragir.isa.registry import current, per_table
from fragir.isa.spelling import FragmentName, fragment_name, mnk
from fragir.isa.targets import number

# --- what an operation says besides shapes and types ----------------------------------------------


class How(NamedTuple):
    """What says which instruction it is besides shape and element types: an operation's words."""

    satfinite: bool = False
    rounding: str = ""
    bitop: str = ""
    kind: str = ""
    scale: str = ""
    """The type of the scales, ue8m0 or ue4m3; empty without scales."""
    block: int = 0
    """How many elements along K have one scale."""
    sparse: str = ""
    """The family of a sparse product, `mma.sp` or `mma.sp::ordered_metadata`."""


PLAIN = How()
ROUNDINGS = ("rn", "rz", "rm", "rp")
BITOPS = ("and", "xor")
KINDS = ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
_FP8_FP6_FP4 = frozenset(FLOAT8_6_4)


def check_how(a: str, b: str, d: str, how: How) -> None:
    """FragirError where a word does not go with the element types, or says nothing."""
    if how.satfinite and (d != "s32" or a == "b1"):
        raise FragirError(
            f"`satfinite` clamps sums of 8- and 4-bit integers, not of {a}", hint="leave it out"
        )
    if how.rounding and how.rounding not in ROUNDINGS:
        raise FragirError(f'there is no rounding "{how.rounding}"', hint=_one_of(ROUNDINGS))
    if how.rounding and a != "f64":
        raise FragirError(f"only products of f64 have a choice of rounding, not those of {a}")
    if how.bitop and how.bitop not in BITOPS:
        raise FragirError(f'there is no bitop "{how.bitop}"', hint=_one_of(BITOPS))
    if how.bitop and a != "b1":
        raise FragirError(f"`bitop` combines single bits (ui1), not {a}")
    if how.kind and how.kind not in KINDS:
        raise FragirError(f'there is no kind "{how.kind}"', hint=_one_of(KINDS))
    if how.kind == "f8f6f4" and not {a, b} <= _FP8_FP6_FP4:
        raise FragirError(
            f'kind "f8f6f4" multiplies {", ".join(sorted(_FP8_FP6_FP4))}, not {a} by {b}'
        )
    if how.kind == "f8f6f4" and how.scale:
        raise FragirError(
            'kind "f8f6f4" has no scales', hint='leave the kind out, or write kind "mxf8f6f4"'
        )
    if how.kind.startswith("mx") and not how.scale:
        raise FragirError(
            f'kind "{how.kind}" scales its blocks', hint="write `scaled %sfa, %sfb` after C"
        )
    if PACKED in (a, b) and not how.scale:
        raise FragirError(
            "packed f4E2M1FN are multiplied with scales only",
            hint="write `scaled %sfa, %sfb` after C, or keep each in a byte of its own (f4E2M1FN)",
        )


def _one_of(words: Sequence[str]) -> str:
    return "write " + " or ".join(f'"{word}"' for word in words)


def check_scales(a: str, b: str, d: str, how: How) -> None:
    """FragirError where no instruction scales products of these types by such blocks."""
    if not {a, b} <= _FP8_FP6_FP4 and not a == b == PACKED:
        raise FragirError(
            f"no instruction scales products of {a} by {b}",
            hint="A and B are 8-, 6- and 4-bit floats in bytes, or both !frag.packed<f4E2M1FN>",
        )
    if d != "f32":
        raise FragirError(f"scaled products are summed in f32, not in {d}")
    served = blocks(a, how.scale)
    twice = 2 if how.sparse else 1
    if not served:
        raise FragirError(
            f"scales of {a} are not {how.scale}",
            hint="write f8E8M0FNU" + (", or f8E4M3FN of blocks of 16" if a == PACKED else ""),
        )
    if how.kind and (how.kind == "mxf8f6f4") != (a != PACKED):
        raise FragirError(f'kind "{how.kind}" does not multiply {a}', hint="leave the kind out")
    if how.kind == "mxf4":
        served = (32,)
        if how.scale != "ue8m0":
            raise FragirError(f'kind "mxf4" has scales of ue8m0 (f8E8M0FNU), not {how.scale}')
    known = [twice * block for block in served]
    if how.block not in known:
        raise FragirError(
            f"a scale of {how.scale} serves {' or '.join(map(str, known))} elements of K here, "
            f"not {how.block}",
            hint=f"give SFA and SFB K / {known[0]} scales along K",
        )


# --- instructions ---------------------------------------------------------------------------------

QUAD = "m8n8k4"  # with f16: four products a warp


def mma(
    shape: str,
    a: str,
    b: str,
    c: str,
    d: str,
    layouts: tuple[str, str] = ("row", "col"),
    how: How = PLAIN,
) -> isa.Instruction:
    """The mma.sync or mma.sp of this shape, these element types and words.

    Single bits are anded unless told otherwise.
    """
    kind = how.kind or _default_kind(a, b, how, shape)
    return isa.find(
        how.sparse or "mma",
        shape=shape,
        a=multiplied_as(a),
        b=multiplied_as(b),
        c=c,
        d=d,
        layouts=layouts,
        satfinite=how.satfinite,
        kind=kind,
        rounding=how.rounding if how.rounding != "rn" else "",
        operation=(how.bitop or "and") if a == "b1" else "",
        scale=how.scale or ("ue8m0" if a == PACKED else ""),
        scale_vec=_scale_vec(kind, how, shape),
    )


def _default_kind(a: str, b: str, how: How, shape: str) -> str:
    """The kind of the narrow floats and of what is scaled; of packed ones also without a scale,
    as a layout's name means them."""
    if a == PACKED:
        plain = how.scale in ("", "ue8m0") and _scale_vec("mxf4", how, shape) == "2X"
        return "mxf4" if plain else "mxf4nvf4"
    if how.scale:
        return "mxf8f6f4"
    return "f8f6f4" if {a, b} & NARROW_FLOATS else ""


def _scale_vec(kind: str, how: How, shape: str) -> str:
    """How many scales a row of one instruction has: `2X`; empty for a kind without scales."""
    if not kind.startswith("mx"):
        return ""
    if not how.block:
        return "1X" if kind == "mxf8f6f4" else "2X"
    return f"{mnk(shape)[2] // how.block}X"


def wgmma(n: int, a: str, b: str, d: str, how: How = PLAIN) -> isa.Instruction:
    """The wgmma, sparse where `how` says so, with N = n of these element types."""
    k = wgmma_k(a) * (2 if how.sparse else 1)
    return isa.find(
        "wgmma.sp" if how.sparse else "wgmma",
        shape=f"m64n{n}k{k}",
        a=a,
        b=b,
        d=d,
        satfinite=how.satfinite,
        operation="and" if a == "b1" else "",
    )


def parse_name(name: str) -> FragmentName:
    """`m8n8k4.f16.row.col` taken apart; FragirError where it names no instruction."""
    found = fragment_name(name)
    if found is None:
        raise FragirError(
            f"'{name}' names no instruction", hint="write shape and type, as in m16n8k16.f16"
        )
    return found


@per_table
def fragment_instruction(name: str, operand: str) -> isa.Instruction:
    """The instruction whose operand the layout `#frag.mma<name, operand>` means."""
    if operand not in ("a", "b", "c"):
        raise FragirError(f"no operand '{operand}'", hint="write a, b or c (d has c's layout)")
    shape, type_, orders = named = parse_name(name)
    if named.is_by_warpgroups:
        if not wgmma_k(type_):
            raise FragirError(f"no wgmma multiplies {type_}", hint=f"it takes {wgmma_types()}")
        instruction = wgmma(mnk(shape)[1], type_, type_, accumulators(type_)[0])
        if shape != _shape_name(instruction):
            raise FragirError(f"wgmma of {type_} has k{wgmma_k(type_)}, not {shape}")
        if operand == "b":
            raise FragirError("wgmma's B lies in shared memory and has no layout over lanes")
        return instruction
    if shape == QUAD and operand == "c" and type_ in ("f16", "f32"):
        return mma(QUAD, "f16", "f16", type_, type_)
    if type_ == PACKED:
        return mma(shape, type_, type_, "f32", "f32")
    sums = accumulators(type_)
    if not sums:
        raise FragirError(f"no mma multiplies {type_}", hint=f"it takes {mma_types()}")
    accumulator = sums[0]
    if shape != QUAD or type_ == "f64":
        if orders:
            raise FragirError(f"{name}: only m8n8k4.f16 has a choice of row and col")
        return mma(shape, type_, type_, accumulator, accumulator)
    if len(orders) != 1:
        raise FragirError(f"{name}: write m8n8k4.f16.row or m8n8k4.f16.col for operand {operand}")
    layouts = (orders[0], "col") if operand == "a" else ("row", orders[0])
    return mma(QUAD, "f16", "f16", "f32", "f32", layouts)


def operand_name(name: str, operand: str, accumulator: str) -> str:
    """The name in the layout of one operand of the instruction called `name`."""
    shape, type_, orders = parse_name(name)
    if shape != QUAD or type_ == "f64":
        return f"{shape}.{type_}"
    if operand == "c":
        return f"{shape}.{accumulator}"
    return f"{shape}.f16.{orders[0 if operand == 'a' else 1]}"


def accumulator_of(a: str, b: str, wanted: str | None) -> str:
    """The type in which products of a and b are summed; FragirError if there is no such mma."""
    sums = accumulators(a)
    if not sums or not multiplies(a, b):
        raise FragirError(
            f"no instruction multiplies {a} by {b}",
            hint=f"cast one; there is {mma_types()}, each by itself, signs and 8-bit floats mixed",
        )
    if wanted is None:
        return sums[0]
    if wanted not in sums:
        raise FragirError(
            f"products of {a} cannot be summed in {wanted}",
            hint=f"accumulate in {' or '.join(sums)}",
        )
    return wanted


def mma_types() -> str:
    """The types that mma.sync multiplies, in words."""
    return ", ".join(by_width(multiplied(DENSE, False)))


def check_words(types: tuple[str, str, str, str], how: How) -> None:
    """FragirError where element types do not go with each other or with an operation's words."""
    a, b, _, d = types
    if how != PLAIN or PACKED in (a, b):
        check_how(a, b, d, how)
    if how.scale:
        check_scales(a, b, d, how)
    else:
        accumulator_of(a, b, None)


def is_mma(shape: str, types: tuple[str, str, str, str], how: How) -> bool:
    """Whether there is an mma of this shape, whatever its target."""
    try:
        mma(shape, *types, how=how)
    except FragirError:
        return False
    return True


def check_target(instruction: isa.Instruction, target: str | None) -> None:
    """FragirError, with the first target that has it, where this one has not."""
    if target is not None and target not in instruction.targets:
        first = min(instruction.targets, key=lambda name: number(name), default="no target")
        hint = f"it exists from {first} on"
        form = instruction.form
        other = current().resolve(form._replace(flags=form.flags - {"and"} | {"xor"}))
        if "and" in form.flags and other is not None and target in other.targets:
            hint += f'; {target} has bitop "xor"'
        raise FragirError(f"{target} has no {instruction.mnemonic}", hint=hint)


def instruction_of(name: str, a: str, b: str, c: str, d: str, how: How = PLAIN) -> isa.Instruction:
    """The mma.sync that the short name means for these element types."""
    shape, _, orders = parse_name(name)
    return lookup(shape, (a, b, c, d), orders, how)


def lookup(
    shape: str, types: tuple[str, ...], orders: tuple[str, ...], how: How
) -> isa.Instruction:
    """The mma.sync of this shape, types and orders of A and B; FragirError where there is none."""
    a, b, c, d = types
    layouts = (orders[0], orders[1]) if len(orders) == 2 else ("row", "col")
    try:
        instruction = mma(shape, a, b, c, d, layouts, how)
    except FragirError as error:
        known = " or ".join(accumulators(a))
        raise FragirError(
            f"there is no {shape} of {a} x {b} + {c} -> {d}",
            hint=f"products of {a} are summed in {known}" if known else None,
        ) from error
    if instruction.refused:
        raise FragirError(f"{instruction.mnemonic}: {instruction.refused}")
    return instruction


def _shape_name(instruction: isa.Instruction) -> str:
    return "m{}n{}k{}".format(*instruction.shape)


def largest_n(cols: int, a: str) -> int:
    """The largest N of a wgmma on type `a` that divides `cols`; FragirError without one."""
    for n in range(256, 0, -8):
        if cols % n == 0 and is_wgmma_n(n, a):
            return n
    raise FragirError(f"{cols} columns are no multiple of 8, wgmma's smallest N")


@per_table
def is_wgmma_n(n: int, a: str) -> bool:
    """Whether wgmma has this N for type `a` (every multiple of 8 up to 256; integers skip some)."""
    try:
        wgmma(n, a, a, accumulators(a)[0])
    except FragirError:
        return False
    return True


def wgmma_types() -> str:
    """The types of A and B that wgmma multiplies, as words."""
    return ", ".join(by_width(multiplied(WARPGROUP, False)))
