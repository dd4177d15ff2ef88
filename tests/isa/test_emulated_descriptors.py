"""Descriptors of tcgen05: the table's decoders against those that the emulator has of its own."""

from __future__ import annotations

import random
from typing import Any, Literal

import numpy as np
import pytest

from fragir.emulator.tensor_cores.shared_matrices import chunk_addresses
from fragir.emulator.tensor_cores.tcgen05 import KINDS as EMULATED
from fragir.emulator.tensor_cores.tcgen05 import ProductForm, TensorProduct, read_product
from fragir.errors import FragirError
from fragir.isa.canonical import element_form
from fragir.isa.descriptors import (
    KINDS,
    decode,
    decode_instruction,
    instruction_descriptor,
    instruction_faults,
)
from fragir.isa.tensor_products import shape_rules

# K = 96 is of the one, integers are of the other.
_TARGETS = {"i8": "sm_100a"}
_VECTORS = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}


def _forms(kind: str) -> list[ProductForm]:
    every = [
        ProductForm(kind, group, sparse, separate, False, vector)
        for group in (1, 2)
        for sparse in (False, True)
        for separate in (False, True)
        for vector in _VECTORS.get(kind, (0,))
    ]
    return [form for form in every if not form.separate or (form.group == 1 and not form.vector)]


def _target(kind: str) -> str:
    return _TARGETS.get(kind, "sm_103a")


def _read(form: ProductForm, word: int) -> TensorProduct | str:
    try:
        return read_product(form, word, _target(form.kind))
    except FragirError as error:
        return str(error)


def _faults(form: ProductForm, word: int) -> list[str]:
    found = instruction_faults(
        word, form.kind, cta_group=form.group, ws=form.separate, target=_target(form.kind)
    )
    return list(found)


def _told_apart(form: ProductForm, word: int) -> bool:
    """Whether the two may differ: what the table notes, or cannot know of a descriptor alone."""
    said = decode_instruction(word, form.kind)
    if bool(said["sparse"]) != form.sparse or said.get("max_shift"):
        return True  # the instruction says it; a shift is not emulated
    if form.kind == "f16" and said["a"] != said["b"]:
        return True  # `instruction_notes`
    if said.get("mn_major_b") and form.group == 2:
        return int(said["n"]) % 32 != 0  # each block has half of the columns
    return bool(form.vector)  # how many scales there are decides where they may begin


def _sizes(form: ProductForm) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rules = shape_rules(form.kind, group=form.group, ws=form.separate, sparse=form.sparse)
    rule = next(rules)
    return rule.m, rule.n


def _sound(form: ProductForm, draw: random.Random) -> int:
    """A descriptor that means something, of types, sizes and flags by chance."""
    _, codes, results = KINDS[form.kind]
    names = {field.name for field in KINDS[form.kind][0]}
    of_m, of_n = _sizes(form)
    for _ in range(1000):
        flags: dict[str, Any] = {"sparse": int(form.sparse)}
        for name in ("mn_major_a", "mn_major_b", "negate_a", "negate_b", "saturate"):
            if name in names:
                flags[name] = int(draw.random() < 0.3)
        a = draw.choice(list(codes))
        b = a if form.kind == "f16" else draw.choice(list(codes))
        scale = "" if not form.vector else "ue4m3" if form.vector == 4 else "ue8m0"
        try:
            return instruction_descriptor(
                form.kind, m=draw.choice(of_m), n=draw.choice(of_n),
                a=a, b=b, d=draw.choice(results), scale=scale,
                cta_group=form.group, ws=form.separate, target=_target(form.kind), **flags,
            )  # fmt: skip
        except FragirError:
            continue
    raise AssertionError(f"{form} has no descriptor")


@pytest.mark.parametrize("kind", list(EMULATED))
def test_instruction_descriptors_mean_the_same(kind: str) -> None:
    """Of every form: M, N, types and flags of sound ones, and which altered ones mean nothing."""
    draw = random.Random(kind)
    for form in _forms(kind):
        refused = 0
        for _ in range(60):
            word = _sound(form, draw)
            found, said = _read(form, word), decode_instruction(word, kind)
            if isinstance(found, str):
                assert _told_apart(form, word), f"{form}: {found}"
                continue
            assert (found.m, found.n, found.a, found.b) == tuple(
                said[x] for x in ("m", "n", "a", "b")
            )
            assert found.d == said.get("d", "f32")
            majors = tuple(bool(said.get(f"mn_major_{x}")) for x in "ab")
            assert (found.mn_major, found.negate) == (
                majors, (bool(said["negate_a"]), bool(said["negate_b"])),
            )  # fmt: skip
            for _ in range(8):
                other = word ^ 1 << draw.randrange(32)
                result, faults = _read(form, other), _faults(form, other)
                if _told_apart(form, other):
                    assert isinstance(result, str) or not faults, f"{form} {other:#x}: {faults}"
                    continue
                assert isinstance(result, str) == bool(faults), f"{form} {other:#x}: {faults}"
                refused += bool(faults)
        assert refused or form.vector


@pytest.mark.parametrize(
    ("element", "padded"),
    [("f16", False), ("tf32", False), ("e4m3", False), ("e2m1", True), ("e2m1x2", False)],
)
def test_matrix_descriptors_mean_the_same(element: str, padded: bool) -> None:
    """Every swizzle and both majors: the chunks that the emulator reads hold those elements."""
    draw = random.Random(element)
    size, bits, per_chunk = element_form(element, padded=padded)
    per = per_chunk or 16 // size
    units = 8 if bits else 1
    seen = 0
    for _ in range(200):
        major: Literal["k", "mn"] = draw.choice(("k", "mn"))
        swizzle = draw.choice((0, 1, 2, 4, 6))
        word = draw.randrange(1 << 14) | 1 << 46 | swizzle << 61 | draw.randrange(8) << 49
        word |= draw.randrange(1, 256) << 16 | draw.randrange(1, 256) << 32
        mn, chunks = 64, 2
        k = per * chunks if major == "k" else 32 // size
        try:
            places = decode(word, "sm_100a").places(element, major, mn, k, padded=padded)
        except FragirError:
            continue
        if major == "k":
            found = chunk_addresses(word, mn, chunks, mn_major=False, width=size)
            expected = places[:, ::per]
        else:
            found = chunk_addresses(word, k, mn // per, mn_major=True, width=size)
            expected = places[::per].T
        assert np.array_equal(expected // units & 0x3FFFF, found), (hex(word), major)
        seen += 1
    assert seen > 50
