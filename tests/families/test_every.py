"""Every tensor-core instruction of the table, from the matrix level to the emulator.

What is not reached is listed here with its reason. By default each type, word and form of wgmma
is run with some N, and all N with some types; `fragir sweep wgmma-families` runs every one.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from fragir import compile as compile_program
from fragir import isa
from fragir.compiler import lower, parse
from fragir.dialects import frag
from fragir.dialects.shorthands import memref_type
from fragir.isa.targets import newest
from fragir.toolchain import ptxas

from .every import Case, chain
from .judges import (
    BLOCKS,
    FAMILIES,
    UNREACHED,
    every_case,
    name,
    one_element_hits_one,
    one_hot_says_something,
    products_are_exact,
    random_products_are_within_the_bound,
    run,
)

COUNTS = {"mma": 201, "mma.sp": 44, "mma.sp::ordered_metadata": 127, "wgmma": 546, "wgmma.sp": 528}


@cache
def run_cases() -> tuple[Case, ...]:
    """All mma; of wgmma a sample in which N and everything else take turns."""
    chosen: list[Case] = []
    for family in FAMILIES:
        cases = list(every_case(family))
        if family.startswith("wgmma"):
            cases = list(_sample(cases))
        chosen += cases
    return tuple(chosen)


def _sample(cases: list[Case]) -> Iterator[Case]:
    groups: dict[object, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.instruction.types, case.flags, case.form].append(case)
    for i, group in enumerate(groups.values()):
        # small N mostly: they run fast; the largest of a group now and then
        yield group[i % min(4, len(group))]
        if i % 8 == 0:
            yield group[-1 - i // 8 % len(group)]


def test_the_table_is_what_this_was_written_for() -> None:
    found = {family: 0 for family in FAMILIES}
    refused: set[str] = set()
    for instruction in isa.instructions():
        if instruction.family in found:
            found[instruction.family] += 1
            if instruction.refused:
                refused.add(instruction.mnemonic)
    assert found == COUNTS
    assert refused == set(UNREACHED)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_operation_on_its_tiles_means_the_instruction(family: str) -> None:
    """Every one of the family, by types, shapes and words alone."""
    for case in every_case(family):
        assert operation_of(case).mnemonic == case.instruction.mnemonic


def operation_of(case: Case) -> isa.Instruction:
    """The instruction that the case's operation becomes, made without its text."""
    shapes = case.shapes()
    tiles = {x: create_ssa_value(_tile(case, x, shape)) for x, shape in shapes.items()}
    scales = [tiles[x] for x in ("x", "y") if x in tiles]
    words = case.words
    given = defaultdict(str, re.findall(r'(\w+) "([^"]+)"', words))
    satfinite, kind = "satfinite" in case.flags, given["kind"]
    a, b, c = (tiles[x] for x in "abc")
    if case.is_wgmma:
        space = frag.SharedAttr(64)
        k, n = shapes["b"]
        right = MemRefType(_tile(case, "b", (k, n)).element_type, [n, k], memory_space=space)
        left: SSAValue = a
        if case.form == "descriptor":
            element = _tile(case, "a", shapes["a"]).element_type
            left = create_ssa_value(MemRefType(element, shapes["a"], memory_space=space))
        wgmma = frag.WgmmaOp(
            left,
            create_ssa_value(right),
            c,
            b_transposed=True,
            metadata=tiles.get("e"),
            satfinite=satfinite,
        )
        wgmma.verify()
        return wgmma.instruction(n)
    if case.is_sparse:
        unordered = "unordered" in words
        sparse = frag.MmaSparseOp(
            *(a, b, c, tiles["e"]),
            scales=scales,
            unordered=unordered,
            satfinite=satfinite,
            kind=kind,
        )
        sparse.verify()
        return sparse.instruction()
    dense = frag.MmaOp(
        *(a, b, c, _tile(case, "d", shapes["d"])),
        using=given["using"],
        scales=scales,
        satfinite=satfinite,
        rounding=given["rounding"],
        bitop=given["bitop"],
        kind=kind,
    )
    dense.verify()
    return dense.instruction()


@cache
def _element_type(text: str) -> Attribute:
    """The type of the IR that has this name."""
    module = parse(f"func.func private @f(memref<1x2x{text}>)")
    function = next(iter(module.ops))
    assert isinstance(function, func.FuncOp)
    return memref_type(function.function_type.inputs.data[0]).element_type


def _tile(case: Case, operand: str, shape: tuple[int, ...]) -> frag.TileType:
    return frag.TileType(shape, _element_type(case.ir_type(operand)))


def test_every_level_reads_back() -> None:
    """Placed tiles and lanes, printed and in the generic form, of one case for all words."""
    seen: dict[object, Case] = {}
    for case in run_cases():
        seen.setdefault((case.instruction.family, case.flags, case.form), case)
    assert len(seen) > 25
    for case in seen.values():
        module = parse(case.program())
        for level in ("placed", "lane"):
            lower(module, level, case.target)
            text, generic = str(module), io.StringIO()
            Printer(generic, print_generic_format=True).print_op(module)
            assert str(parse(text)) == str(parse(generic.getvalue())) == text


@pytest.mark.parametrize("mnemonic", UNREACHED)
def test_what_is_not_reached_is_refused(mnemonic: str) -> None:
    case = Case(isa.lookup(mnemonic))
    assert case.instruction.refused
    a, b, c = (create_ssa_value(_tile(case, x, case.shapes()[x])) for x in "abc")
    type_, orders = case.instruction.types.a, ".".join(case.instruction.form.layouts)
    for using in (f"m8n8k4.{type_}", f"m8n8k4.{type_}.{orders}", None):
        with pytest.raises(VerifyException):
            frag.MmaOp(a, b, c, using=using).verify()


def test_ptxas_takes_them_without_a_warning() -> None:
    """One module a target; m8n8k4 of f16 for sm_70 and sm_72, too, by ptxas 12."""
    texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for i, case in enumerate(run_cases()):
        targets = {case.target}
        if case.is_quad:
            targets |= {"sm_70", "sm_72"}
        for target in targets:
            program = case.program(f"k{i}", BLOCKS)
            ptx = compile_program(program, target=target).ptx
            assert f" {case.instruction.mnemonic} " in ptx
            head, _, kernel = ptx.partition(".visible")
            version = head.split()[1]
            texts[target].append((version, f".visible{kernel}"))
    assert {"sm_70", "sm_72", "sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_120a"} <= set(texts)
    for target, kernels in texts.items():
        version = newest(version for version, _ in kernels)
        head = f".version {version}\n.target {target}\n.address_size 64\n"
        assembled = ptxas.assemble(head + "\n".join(text for _, text in kernels), target)
        assert assembled.warnings == []
        assert len(assembled.entries) == len(kernels)


@pytest.mark.parametrize("case", run_cases(), ids=name)
def test_products_are_exact(case: Case) -> None:
    products_are_exact(case)


@pytest.mark.parametrize("case", run_cases(), ids=name)
def test_random_products_are_within_the_reference_s_bound(case: Case) -> None:
    random_products_are_within_the_bound(case)


@pytest.mark.parametrize("case", run_cases(), ids=name)
def test_one_element_of_a_and_b_hits_one_of_d(case: Case) -> None:
    if not one_hot_says_something(case):
        pytest.skip("test_mma.py has m8n8k4; with xor every unequal bit counts")
    one_element_hits_one(case)


ROUNDINGS = [c for c in run_cases() if c.instruction.types.a == "f64"]


@pytest.mark.parametrize("case", ROUNDINGS, ids=name)
def test_sums_of_f64_are_rounded_as_asked(case: Case) -> None:
    """Every product and sum by rational arithmetic: fused, in rising k."""
    rng = np.random.default_rng(3)
    values = {x: case.normal(rng, x, BLOCKS) for x in "abc"}
    found = run(case, values)
    mode = next(iter(case.flags), "rn")
    for block, i, j in np.ndindex(1, *found.shape[1:]):
        row, column = values["a"][block, i], values["b"][block, :, j]
        assert found[block, i, j] == chain(row, column, float(values["c"][block, i, j]), mode)
