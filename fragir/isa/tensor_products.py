"""What `tcgen05.mma` multiplies: kinds with their types, and the legal M, N and K.

The mnemonic of `tcgen05.mma` says the kind; shape and types stand in its instruction descriptor
(PTX ISA 9.2, sections 9.7.16.2.1 and 9.7.16.4.2). `SHAPES` is the ISA's table of shapes by kind.

>>> check_shape("f16", 128, 256)
>>> check_shape("f16", 48, 64)
Traceback (most recent call last):
...
fragir.errors.FragirError: tcgen05.mma kind::f16 has no M = 48 (M is one of 32, 64, 128, 256)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa.versions import has, requirement
from fragir.ptx.targets import targets_with

STEP_BITS = 256
"""Bits of K that one dense product reads of a row of A."""

_FLOAT8 = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}


class TensorKind(NamedTuple):
    """A kind: the codes of the types of A and B, the types of D, bits an element of A or B takes.

    `scales`: types of block scales, by how many of them there are along K (`scale_vec`).
    """

    types: Mapping[str, int]
    results: tuple[str, ...]
    bits: int
    scales: Mapping[int, tuple[str, ...]] = {}


KINDS: Mapping[str, TensorKind] = {
    "f16": TensorKind({"f16": 0, "bf16": 1}, ("f16", "f32"), 16),
    "tf32": TensorKind({"tf32": 2}, ("f32",), 32),
    "f8f6f4": TensorKind(_FLOAT8, ("f16", "f32"), 8),
    "i8": TensorKind({"u8": 0, "s8": 1}, ("s32",), 8),
    "ti16": TensorKind({"s1z4m11": 3}, ("s32",), 16),
    "mxf8f6f4": TensorKind(_FLOAT8, ("f32",), 8, {1: ("ue8m0",)}),
    "mxf4": TensorKind({"e2m1": 1}, ("f32",), 4, {2: ("ue8m0",)}),
    "mxf4nvf4": TensorKind({"e2m1": 1}, ("f32",), 4, {2: ("ue8m0",), 4: ("ue8m0", "ue4m3")}),
}

# K = 96 of dense 4-bit products: 48 bytes of a row instead of 32 (section 9.7.16.2.1).
WIDE_K = 96
WIDE_KINDS = ("mxf4", "mxf4nvf4")
WIDE_TARGETS = ("sm_103a", "sm_107a")


class Addition(NamedTuple):
    """What dense products of some kinds have on some targets alone: a further K, or type of scales.

    `types`: those of A and B that it is for; () is all of the kind.
    """

    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    k: int = 0
    scale: str = ""
    types: tuple[str, ...] = ()


_NEWEST = targets_with("ti16")
ADDITIONS: tuple[Addition, ...] = (
    Addition(WIDE_KINDS, WIDE_TARGETS, k=WIDE_K),
    Addition(("f8f6f4",), _NEWEST, k=64, types=("e4m3", "e5m2")),
    Addition(("mxf8f6f4",), _NEWEST, k=64),
    Addition(WIDE_KINDS, _NEWEST, k=128),
    Addition(("mxf4nvf4",), _NEWEST, scale="ue5m3"),
)
"""PTX ISA 9.4, section 9.7.18.2.1: nothing in a mnemonic says so, and no ptxas looks at it."""


class ShapeRule(NamedTuple):
    """Kinds that share M and N: with so many CTAs, in the `.ws` form or not, sparse or not."""

    kinds: tuple[str, ...]
    group: int
    ws: bool
    sparse: tuple[bool, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]


def _upto(last: int, step: int) -> tuple[int, ...]:
    return tuple(range(step, last + 1, step))


_FLOAT, _INTEGER = ("f16", "tf32", "f8f6f4"), ("i8", "ti16")
_MX = ("mxf8f6f4", "mxf4", "mxf4nvf4")
_BOTH = (False, True)

SHAPES: tuple[ShapeRule, ...] = (
    ShapeRule(_FLOAT, 1, False, _BOTH, (64, 128), _upto(256, 8)),
    ShapeRule(_FLOAT, 2, False, _BOTH, (128, 256), _upto(256, 16)),
    ShapeRule(("i8",), 1, False, _BOTH, (64, 128), (8, 24, *_upto(256, 16))),
    ShapeRule(("i8",), 2, False, _BOTH, (128, 256), _upto(256, 32)),
    ShapeRule(("ti16",), 1, False, _BOTH, (64,), _upto(256, 8)),
    ShapeRule(("ti16",), 1, False, _BOTH, (128,), _upto(256, 16)),
    ShapeRule(("ti16",), 2, False, _BOTH, (128, 256), _upto(256, 32)),
    ShapeRule((*_FLOAT, *_INTEGER), 1, True, (False,), (32, 64, 128), (64, 128, 256)),
    ShapeRule((*_FLOAT, *_INTEGER), 1, True, (True,), (32, 64, 128), (64, 128)),
    ShapeRule(_MX, 1, False, _BOTH, (128,), _upto(256, 8)),
    ShapeRule(_MX, 2, False, (False,), (128, 256), _upto(256, 16)),
    ShapeRule(_MX, 2, False, (True,), (256,), _upto(256, 16)),
)


def kind_of(name: str) -> TensorKind:
    """The kind called so; an error that lists them where there is none."""
    found = KINDS.get(name)
    if found is None:
        raise FragirError(f"tcgen05.mma has no kind {name}", hint=f"one of {', '.join(KINDS)}")
    return found


def depths(kind: str, *, sparse: bool = False) -> tuple[int, ...]:
    """The legal K: a sparse product has twice as many columns of A, of which it holds half."""
    k = STEP_BITS // kind_of(kind).bits
    if sparse:
        return (2 * k,)
    return (k, WIDE_K) if kind in WIDE_KINDS else (k,)


def shape_rules(
    kind: str, *, group: int = 0, ws: bool | None = None, sparse: bool | None = None
) -> Iterator[ShapeRule]:
    """The rules of a kind; of those CTAs, that form, sparsity alone where they are given."""
    kind_of(kind)
    for rule in SHAPES:
        if kind not in rule.kinds or group not in (0, rule.group):
            continue
        if ws in (None, rule.ws) and (sparse is None or sparse in rule.sparse):
            yield rule


def check_shape(
    kind: str,
    m: int,
    n: int,
    *,
    group: int = 0,
    ws: bool | None = None,
    sparse: bool | None = None,
    target: str = "",
) -> None:
    """FragirError where no `tcgen05.mma` of the kind is m x n, or the target lacks the kind.

    What is left out (CTAs, `.ws`, sparsity) may be anything.
    """
    rules = list(shape_rules(kind, group=group, ws=ws, sparse=sparse))
    name = f"tcgen05.mma{'.sp' if sparse else ''}{'.ws' if ws else ''} kind::{kind}"
    if group:
        name += f" with cta_group::{group}"
    if target:
        check_target(kind, target)
    if not rules:
        raise FragirError(f"there is no {name}")
    fitting = [rule for rule in rules if m in rule.m]
    if not fitting:
        every = sorted({size for rule in rules for size in rule.m})
        raise FragirError(f"{name} has no M = {m}", hint=f"M is one of {_listed(every)}")
    if not any(n in rule.n for rule in fitting):
        every = sorted({size for rule in fitting for size in rule.n})
        raise FragirError(
            f"{name} has no N = {n} with M = {m}", hint=f"N is one of {_listed(every)}"
        )


def check_target(kind: str, target: str) -> None:
    """FragirError where the target has no `tcgen05.mma` of the kind."""
    opcode = f"tcgen05.mma.kind::{kind}"
    if not has(opcode, target):
        having = requirement(opcode).targets
        raise FragirError(
            f"{target} has no tcgen05.mma of kind::{kind}", hint=f"{', '.join(having)} have"
        )


def _listed(sizes: list[int]) -> str:
    """Numbers in words: those with equal steps as a range.

    >>> _listed([8, 16, 24, 32]), _listed([8, 16, 24, 32, 48, 64, 80])
    ('8, 16, ..., 32', '8, 16, 24, 32, 48, 64, 80')
    """
    steps = {b - a for a, b in pairwise(sizes)}
    if len(sizes) < 4 or len(steps) > 1:
        return ", ".join(map(str, sizes))
    return f"{sizes[0]}, {sizes[1]}, ..., {sizes[-1]}"


def shape_notes(kind: str, m: int, n: int) -> tuple[str, ...]:
    """What is to be said of a legal shape all the same: who refuses it."""
    wanted = {"i8": "n = 8 and multiples of 16"}.get(kind, "multiples of 16")
    odd = n == 24 if kind == "i8" else n % 16 and kind in _FLOAT
    if m == 128 and odd:
        return (
            f"m = 128 with n = {n} is legal by the PTX ISA, but CuTe refuses it: it takes {wanted}",
        )
    return ()
