"""The small kernels of docs/in-the-wild.md for sm_100: what is found in each, and in its twin.

A file's twin has the lines marked MEND or BREAK instead of those marked FAULT or KEEP.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Finding, TensorMap, run
from fragir.toolchain import ptxas

FOLDER = Path(__file__).parents[2] / "examples" / "in_the_wild" / "sm100"
# As `fragir check`.
SCHEDULES: tuple[tuple[Literal["late", "early", "random"], int | None], ...] = (
    ("late", None),
    ("early", None),
    ("random", 1),
    ("random", 2),
)
#: (severity, kind, the word that marks the line)
Found = set[tuple[str, str, str]]


class Candidate(NamedTuple):
    """How a file is launched, and what is found in it and in its twin."""

    found: Found
    twin: Found
    blocks: int = 1
    threads: int = 128


CANDIDATES = {
    "pair_alloc": Candidate(
        {("letter", "tensor-memory", "ALLOC")},
        {("letter", "tensor-memory", "ALLOC"), ("error", "race", "DEALLOC")},
        2,
        32,
    ),
    "pair_bytes": Candidate({("error", "deadlock", "WAIT")}, set(), 4, 32),
    "pair_mask": Candidate(set(), {("error", "uninitialised", "USE")}, 2),
    "scale_copy": Candidate(set(), {("error", "proxy-fence", "COPY")}),
    "scale_id": Candidate(set(), set()),
    "ws_rows": Candidate(set(), set()),
    "relaxed": Candidate(set(), {("error", "race", "READ"), ("error", "race", "DEALLOC")}),
    "address": Candidate(
        {
            ("error", "race", "ALLOC"),
            ("error", "race", "FAULT"),
            ("error", "uninitialised", "READ"),
        },
        set(),
    ),
    "parity": Candidate(
        {
            ("error", "pending-source", "REFILL"),
            ("error", "schedule", "FAULT"),
            ("error", "deadlock", "FAULT"),
        },
        set(),
    ),
}


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.ptx").read_text("utf-8")


def twin(text: str) -> str:
    """Line by line; a line keeps its number."""

    def changed(line: str) -> str:
        if re.search(r"// (FAULT|KEEP)\b", line):
            return ""
        return re.sub(r"^(\s+)// (?:MEND|BREAK) (.*)", r"\1\2", line)

    lines = [changed(line) for line in text.splitlines()]
    assert lines != text.splitlines()
    return "\n".join(lines)


def findings(name: str, text: str) -> Found:
    """Of all schedules together."""
    candidate, lines = CANDIDATES[name], text.splitlines()
    found: Found = set()
    for asynchrony, schedule in SCHEDULES:
        try:
            every = run(
                text,
                name,
                grid=(candidate.blocks,),
                block=(candidate.threads,),
                check=True,
                asynchrony=asynchrony,
                schedule=schedule,
            ).findings
        except EmulationError as error:
            before = error.report.findings if error.report else []
            every = [*before, Finding(error.kind, error.message, line=error.line)]
        for one in every:
            assert one.line is not None
            found.add((one.severity, one.kind, lines[one.line - 1].rpartition("// ")[2]))
    return found


def result(name: str, text: str) -> npt.NDArray[Any]:
    candidate = CANDIDATES[name]
    values = np.full(128 * candidate.blocks, -1, np.float32)
    grid, block = (candidate.blocks,), (candidate.threads,)
    run(text, name, grid=grid, block=block, variables={"result": values})
    return values


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(CANDIDATES)


@pytest.mark.parametrize("name", CANDIDATES)
def test_what_is_found(name: str) -> None:
    assert findings(name, text_of(name)) == CANDIDATES[name].found


@pytest.mark.parametrize("name", [name for name in CANDIDATES if name != "ws_rows"])
def test_what_is_found_in_the_twin(name: str) -> None:
    assert findings(name, twin(text_of(name))) == CANDIDATES[name].twin


@pytest.mark.parametrize("name", CANDIDATES)
def test_ptxas_takes_them(name: str) -> None:
    text = text_of(name)
    for ptx in (text, text if name == "ws_rows" else twin(text)):
        assert ptxas.assemble(ptx, "sm_100a").warnings == []


def test_scales_of_a_fifth_group() -> None:
    """32 products of 1, by a scale of 1 and by one of 2: no rule is broken, the sum is another."""
    text = text_of("scale_id")
    assert (result("scale_id", text) == 64).all()
    assert (result("scale_id", twin(text)) == 96).all()


def test_rows_of_ws() -> None:
    """D of 128 rows begins in the lane of its number (layout D)."""
    wanted = np.where(np.arange(128) < 64, 32, 64)
    assert (result("ws_rows", text_of("ws_rows")) == wanted).all()


def test_words_of_lanes() -> None:
    """None of them, and eight that are zero, are the same; a bit leaves a lane alone."""
    text = text_of("pair_mask")
    zero = twin(text).replace("mov.b32 %m, 8;", "mov.b32 %m, 0;")
    assert (result("pair_mask", text) == 32).all()
    assert (result("pair_mask", zero) == 32).all()
    masked = result("pair_mask", twin(text))
    assert np.flatnonzero(masked != 32).tolist() == [3]


def test_the_offsets_of_a_copy() -> None:
    """Rows of 16 bytes in order: two rows have what one thread wrote. The leading offset is never
    used, the stride is."""
    text = text_of("scale_copy")
    described = "mov.b64 %da, {%at, 0x4008}"
    wanted = np.arange(128) % 32 // 2

    def right(text: str) -> bool:
        return bool((result("scale_copy", text).view(np.int32) == wanted).all())

    assert described in text
    assert right(text)
    assert right(text.replace(described, f"or.b32 %at, %at, 0x550000; {described}"))
    assert not right(text.replace(described, described.replace("4008", "4010")))


def test_bytes_of_tensor_copies() -> None:
    """As tilelang has it: each block copies by TMA to itself, and counts at the pair's mbarrier."""
    text = text_of("pair_bytes")
    copy = next(line for line in text.splitlines() if "cp.async.bulk" in line)
    tensor = """.reg .b64 %map; mov.b64 %map, map; cvta.param.u64 %map, %map;
    mul.lo.u32 %rank, %rank, 32;
    @%first cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        .cta_group::2 [%at], [%map, {%rank}], [%there];"""
    signature = "pair_bytes(.param .align 64 .b8 map[128])"
    changed = text.replace(copy, tensor).replace("pair_bytes()", signature)

    def launch(text: str) -> list[Finding]:
        arguments = [TensorMap(np.arange(128, dtype=np.float32), (32,))]
        return run(
            text, grid=(4,), block=(32,), check=True, arguments=arguments, asynchrony="late"
        ).findings

    with pytest.raises(EmulationError, match="lacks 0 of 1 arrivals and 256 bytes"):
        launch(changed)
    assert launch(twin(changed)) == []
