"""What the page computes itself is what Python computes: vectors, asked in node."""

from __future__ import annotations

import random
from functools import cache, lru_cache
from math import prod
from typing import Any

from fragir import isa
from fragir.draw.grid import Cell, Grid, folded_grid
from fragir.draw.memory import addresses_of, passes_of
from fragir.errors import FragirError
from fragir.explore.document import descriptor_tables, tables
from fragir.isa.descriptors import KINDS, decode, decode_instruction
from fragir.isa.layout_texts import read_layout
from fragir.isa.provenance import provenance
from fragir.isa.query import View
from fragir.isa.selection import immediates as immediates_of
from fragir.layout import Layout, write_layout
from fragir.layout.chain import LayoutChain
from fragir.layout.conversion import sources
from tests.draw.test_pictures import MEMORY, REGISTERS
from tests.explore.engine import ask

FORMULAS = [
    "groupID = %laneid >> 2\nthreadID_in_group = %laneid % 4\n"
    "row = groupID for ai where 0 <= i < 2 || 4 <= i < 6\n groupID + 8 Otherwise\n"
    "col = (threadID_in_group * 2) + (i & 0x1) for ai where i < 4\n"
    "(threadID_in_group * 2) + (i & 0x1) + 8 for ai where i >= 4",
    "row = %laneid % 4 + (%laneid / 16) * 4; col = i for i = {0,..,3}",
    "row = X if %laneid < 16\n X + 4 otherwise\nwhere X = (%laneid & 0b1) + (i & 0b10)\n"
    "col = (i & 0b100) + (%laneid & 0b10) + (i & 0b1) for i = {0,..,7}",
    "row = %laneid ^ (i << 1)\ncol = i for i = {0, .., 7}\nheld where %laneid % 4 == 1",
    "row = %laneid >> 2 for a0, a1\n (%laneid >> 2) + 8 for a2 and a3\n"
    "col = %laneid % 4 * 2 + i % 2",
]
TRITON = [
    (f"#ttg.{text}", shape)
    for text, shape in [
        (
            "blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], "
            "order = [1, 0]}>",
            (32, 64),
        ),
        (
            "blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], "
            "order = [0, 1]}>",
            (4, 16),
        ),
        (
            "blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>",
            (1024,),
        ),
        (
            "blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], "
            "order = [1, 0], CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>",
            (32, 32),
        ),
        (
            "nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
            "instrShape = [16, 8]}>",
            (64, 32),
        ),
        (
            "nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
            "instrShape = [16, 24, 16]}>",
            (64, 48),
        ),
        (
            "dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
            "warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
            (32, 32),
        ),
        (
            "dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
            "warpsPerCTA = [1, 4], instrShape = [16, 8]}>, kWidth = 4}>",
            (32, 32),
        ),
        (
            "dot_op<{opIdx = 1, parent = #ttg.blocked<{sizePerThread = [2, 4], "
            "threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>}>",
            (16, 32),
        ),
        (
            "slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
            "warpsPerCTA = [1, 2], instrShape = [16, 8]}>}>",
            (32,),
        ),
        (
            "linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
            "warp = [], block = []}>",
            (16, 16),
        ),
        ("swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", (64, 64)),
        ("swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>", (32, 16)),
        (
            "nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
            (64, 128),
        ),
        (
            "nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>",
            (128, 32),
        ),
        (
            "nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>",
            (16, 16),
        ),
        ("shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 2]]}>", (4, 4)),
        ("padded_shared<[64:+8] {order = [1, 0], shape = [16, 32]}>", (16, 32)),
    ]
]
CUTE = [
    ("((4,8),(2,2)):((32,1),(16,8))", (16, 8)),
    ("((_4,_8),(_2,_2)):((_32,_1),(_16,_8))", (16, 8)),
    ("cute:((4,8),(2,2,2)):((2@1,1@0),(1@1,8@0,8@1))", None),
    ("(8,(4,2)):(16,(1,4))", None),
    ("Sw<3,4,3> o 0 o (8,128):(128,1)", None),
    ("Sw<2,4,3> o smem_ptr[16b](unset) o (8,32):(32,1)", None),
    ("24:3", None),
]


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    return tables()


def asked_of(layout: Layout | LayoutChain) -> dict[tuple[tuple[str, int], ...], Any]:
    """Every slot by name, without axes of size one."""
    return {
        tuple(
            (n, x) for n, x in sorted(zip(layout.names, slot, strict=True)) if layout.sizes[n] > 1
        ): point
        for slot, point in layout.slots()
    }


def told_by(value: dict[str, Any]) -> dict[tuple[tuple[str, int], ...], Any]:
    from itertools import product

    axes = [(str(name), int(size)) for name, size in value["axes"]]
    slots = product(*(range(size) for _, size in axes))
    found: dict[tuple[tuple[str, int], ...], Any] = {}
    for slot, point in zip(slots, value["points"], strict=True):
        at = {n: x for (n, size), x in zip(axes, slot, strict=True) if size > 1}
        found[tuple(sorted(at.items()))] = None if point is None else tuple(point)
    return found


@cache
def read(text: str, shape: tuple[int, ...] | None = None) -> Layout | LayoutChain:
    return read_layout(text, shape)


def same(value: dict[str, Any], layout: Layout | LayoutChain) -> bool:
    """Whether the page's layout is Python's: axes of size one do not count, nor their order."""
    if value["axes"] == [[name, layout.sizes[name]] for name in layout.names]:
        points = [None if point is None else list(point) for _, point in layout.slots()]
        return value["points"] == points
    return told_by(value) == asked_of(layout)


def check_texts(texts: list[tuple[str, tuple[int, ...] | None]]) -> None:
    answers = ask([{"ask": "read", "text": t, "tile": s and list(s)} for t, s in texts])
    for (text, shape), answer in zip(texts, answers, strict=True):
        assert "value" in answer, (text, answer)
        layout = read(text, shape)
        assert same(answer["value"], layout), text
        assert tuple(answer["value"]["dims"]) == layout.dims, text


def test_texts_of_every_notation() -> None:
    own = [(t, None) for t in (*REGISTERS, *MEMORY) if "sync" not in t]
    check_texts(own)  # type: ignore[arg-type]
    check_texts([(text, None) for text in FORMULAS])
    check_texts([*TRITON])
    check_texts([*CUTE])


def test_what_python_writes_is_read() -> None:
    """The layouts of the table in every notation that can say them."""
    rng = random.Random(7)
    found: list[tuple[str, tuple[int, ...] | None]] = []
    texts = [
        text for text in data()["layouts"] if prod(Layout.parse(text).sizes.values()) <= 1 << 11
    ]
    for text in rng.sample(texts, 40):
        layout = Layout.parse(text)
        found.append((text, None))
        for notation in ("f2", "formula", "linear", "cute"):
            try:
                written = write_layout(layout, notation)
            except FragirError:
                continue
            try:
                back = read(written)
            except FragirError:
                continue
            if any(point is not None for _, point in back.slots()):
                found.append((written, None))
    assert len(found) > 100
    check_texts(found)


def test_every_operand_of_every_instruction() -> None:
    """All layouts of the table, and those that an immediate selects."""
    questions: list[dict[str, Any]] = []
    expected: list[Layout] = []
    seen: set[str] = set()
    for found in isa.instructions():
        for name, operand in found.operands.items():
            if operand.layout is None or (key := f"{name} {operand.layout}") in seen:
                continue
            seen.add(key)
            kinds = immediates_of(found, name)
            tries: list[dict[str, int]] = [{}]
            if "selector" in kinds:
                tries += [{"selector": s} for s in found.selectors if s]
            if "thread" in kinds:
                tries += [{"thread": 1}]
            for immediates in tries:
                data_ = data() if not questions else "before"
                blocks = {"blocks": 1} if "thread" in kinds else {}
                questions.append(
                    {
                        "ask": "operand",
                        "data": data_,
                        "mnemonic": found.mnemonic,
                        "operand": name,
                        "immediates": {**immediates, **blocks},
                    }
                )
                expected.append(
                    View.of(
                        found,
                        name,
                        selector=immediates.get("selector", 0),
                        thread=immediates.get("thread", 0),
                    ).layout
                )
    for question, answer, layout in zip(questions, ask(questions), expected, strict=True):
        assert "value" in answer, (question["mnemonic"], question["operand"], answer)
        assert same(answer["value"], layout), question["mnemonic"]
        assert tuple(answer["value"]["dims"]) == layout.dims, question["mnemonic"]


def test_where_an_element_comes_from() -> None:
    rng = random.Random(3)
    names = [
        *(
            rng.choice([i.mnemonic for i in isa.instructions() if i.family == family])
            for family in ("mma", "mma.sp", "wgmma", "wgmma.sp", "ldmatrix", "movmatrix", "mma")
        ),
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    ]
    questions: list[dict[str, Any]] = []
    expected: list[list[Any]] = []
    for name in names:
        found = isa.lookup(name)
        result = "d" if "d" in found.operands else "registers"
        point = tuple(rng.randrange(n) for n in View.of(found, result).shape)
        questions.append(
            {
                "ask": "sources",
                "data": "before" if questions else data(),
                "mnemonic": name,
                "point": point,
                "immediates": {},
            }
        )
        expected.append(
            [
                [s.operand, list(s.point), sorted([p.lane, p.element] for p in s.places)]
                for s in provenance(found, point).sources
            ]
        )
    for name, answer, wanted in zip(names, ask(questions), expected, strict=True):
        told = [[o, p, sorted(slot[:2] for slot in h)] for o, p, h in answer["value"]]
        lanes = [[o, p, [s if len(s) == 2 else [*s, 0] for s in h]] for o, p, h in told]
        assert lanes == wanted, name


PAIRS = [
    (REGISTERS[0], "lane [2:(0,4) 16:(1,0)] element [4:(0,1)]", None),
    (
        "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]",
        "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8) 2:(8,0)]",
        None,
    ),
    (REGISTERS[1], "warp [4:(16,0)] lane [4:(0,6) 8:(1,0)] element [6:(0,1) 2:(8,0)]", None),
    (
        "warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
        "warp [2:(0,0)] lane [32:(1,0)] element [8:(0,1)]",
        None,
    ),
    (
        "warp [2:(0,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
        "warp [2:(8,0)] lane [8:(1,0) 4:(0,2)] element [2:(0,1)]",
        None,
    ),
    (REGISTERS[3], REGISTERS[3], None),
]


def test_conversions() -> None:
    answers = ask([{"ask": "convert", "from": a, "to": b, "tile": t} for a, b, t in PAIRS])
    for (a, b, shape), answer in zip(PAIRS, answers, strict=True):
        source, target = read_layout(a, shape), read_layout(b, shape)
        assert isinstance(source, Layout)
        assert isinstance(target, Layout)
        wanted = sources(source, target)
        assert answer["value"]["kind"] == wanted.kind
        for (warp, lane, element), read in answer["value"]["moves"]:
            slot = wanted.source(warp=warp, lane=lane, element=element)
            assert slot is not None
            assert list(slot[:2]) == read[:2]
            if wanted.kind not in ("identity", "registers"):
                assert list(slot) == read


def test_conversions_that_do_not_fit() -> None:
    wrong = [(REGISTERS[0], "lane [32:(1,0)] element [8:(0,1)]"), (MEMORY[0], REGISTERS[0])]
    for answer in ask([{"ask": "convert", "from": a, "to": b} for a, b in wrong]):
        assert answer["kind"] == "LayoutError"


A = "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]"
ROWS = "lane [4:(0,8) 8:(1,0)] element [8:(0,1)]"


def test_banks() -> None:
    cases = [
        ("row [64:128] col [64:2] dims (byte)", A, None),
        ("row [8:^144 8:1024] col [64:2] dims (byte)", A, None),
        ("row [16:144] col [64:2] dims (byte)", ROWS, None),
        ("row [8:^72 8:512] col [64:1]", ROWS, 16),
        ("row [64:64] col [64:1]", A, 8),
    ]
    questions = [{"ask": "accesses", "text": t, "access": a, "bits": b} for t, a, b in cases]
    for (text, access, bits), answer in zip(cases, ask(questions), strict=True):
        layout = read_layout(text)
        places, unit = addresses_of(layout, bits)
        value = answer["value"]
        assert {tuple(s): p for s, p in value["places"]} == places
        assert value["unit"] == unit
        found = passes_of(layout, read_layout(access), places, unit)
        assert value["passes"] == [[p.element, p.first, p.width, p.passes] for p in found]


def test_descriptors() -> None:
    rng = random.Random(11)
    known = descriptor_tables()
    questions: list[dict[str, Any]] = []
    expected: list[dict[str, Any]] = []
    for target, kind in (("sm_90a", "wgmma"), ("sm_100a", "tcgen05")):
        for word in (
            0,
            (1 << 64) - 1,
            0x4000004000010000,
            *(rng.getrandbits(64) for _ in range(40)),
        ):
            text = rng.choice((f"{word:#x}", f"{word:016x}", f"{word:#018X}".replace("X", "x")))
            questions.append({"ask": "decode", "text": text, "fields": known["matrix"][kind]})
            if text.isdigit():
                questions[-1]["text"] = f"{word:#x}"
            found = decode(word, target)
            values = {f.name: getattr(found, f.name) for f in found.fields}
            expected.append({"values": values, "reserved": str(found.reserved)})
    for kind in KINDS:
        for _ in range(12):
            word = rng.getrandbits(32)
            questions.append(
                {"ask": "instruction", "text": f"{word:#x}", "kind": known["instruction"][kind]}
            )
            expected.append(decode_instruction(word, kind))
    for answer, wanted in zip(ask(questions), expected, strict=True):
        assert answer["value"] == wanted


def test_no_descriptors() -> None:
    fields = descriptor_tables()["matrix"]["wgmma"]
    texts = ["0x1" + "0" * 16, "hello", "", "0x"]
    for answer in ask([{"ask": "decode", "text": text, "fields": fields} for text in texts]):
        assert answer["kind"] == "DescriptorError"


def test_swizzles() -> None:
    """The chunks of 16 bytes of 8 rows, beside the layout of TMA and wgmma."""
    from fragir.layout import swizzled

    answers = ask([{"ask": "pattern", "width": w, "atom": 16} for w in (32, 64, 128)])
    for width, answer in zip((32, 64, 128), answers, strict=True):
        layout = swizzled((8, width), 8, width)
        for row, line in enumerate(answer["value"]):
            for chunk, place in enumerate(line):
                found = layout(row=row, col=16 * chunk)
                assert found is not None
                assert found[0] - row * width == 16 * place


def test_repeats_are_left_out_alike() -> None:
    texts = [REGISTERS[3], REGISTERS[20], REGISTERS[11]]
    for text in texts:
        layout = read_layout(text)
        rows, cols = layout.shape
        holders: dict[tuple[int, ...], tuple[int, ...]] = {}
        for slot, point in layout.slots():
            if point is not None:
                holders.setdefault(point, slot)
        keys = [[holders.get((r, c)) for c in range(cols)] for r in range(rows)]
        cells = tuple(
            tuple(Cell(r, c, "", "", 0, key) for c, key in enumerate(row))
            for r, row in enumerate(keys)
        )
        grid = folded_grid(Grid("", "row", "col", cells, layout.names), 256)
        (answer,) = ask([{"ask": "fold", "keys": keys, "most": 256}])
        value = answer["value"]
        assert value["rows"] == [row[0].row for row in grid.rows]
        assert value["cols"] == [cell.col for cell in grid.rows[0]]
        assert [
            (f["axis"], f["period"], f["times"], tuple(f["steps"])) for f in value["folds"]
        ] == [(f.axis, f.period, f.times, f.steps) for f in grid.folds]
