# ruff: noqa: E501 - a statement is not broken
"""`ptx.op` says every opcode of the table; what it writes is the statement, and ptxas takes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free, is_speculatable

from benchmarks.sweeps import opcodes, statements
from fragir import compile as compile_program
from fragir.compilation import program
from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.isa.versions import module_version
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.reader import parse
from fragir.ptx.tree import Block, Instruction
from fragir.ptx.writer import write_node
from fragir.toolchain.ptxas import assemble

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
#: What a place's type is, by the letter of the register that stands there.
TYPES = {
    **{"p": "i1", "c": "!ptx.bits<8>", "h": "i16", "r": "i32", "f": "f32", "d": "i64"},
    **{"g": "f64", "q": "!ptx.bits<128>"},
}
#: Statements of an opcode.
MOST = 8
#: Where control goes elsewhere, other operations say it; and those with results in two places, of
#: machines that are not asked here.
ELSEWHERE = {
    *("bra", "brx.idx", "call", "ret", "results of call"),
    *("tcgen05.ld.red", "tcgen05.ld.spcompress", "tcgen05.ld.red.spcompress"),
}
#: Of tensor memory, whose operands follow from more than the words of a row.
TCGEN05 = """
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%d0], 32
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r1]
tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%r1], 0
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r1}
tcgen05.wait::ld.sync.aligned
tcgen05.wait::st.sync.aligned
tcgen05.fence::before_thread_sync
tcgen05.fence::after_thread_sync
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%d0]
tcgen05.cp.cta_group::1.128x256b [%r0], %d1
tcgen05.shift.cta_group::1.down [%r0]
tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r2, 1
tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], %d0, %d1, [%r1], %r2, 1
tcgen05.mma.ws.cta_group::1.kind::f16 [%r0], %d0, %d1, %r2, 1
"""
_STATEMENT = re.compile(r'ptx\.op "([^"]*)"')
_REGISTER = re.compile(r"%([pchrfdgq])\d+")


def candidates() -> Iterator[tuple[str, str]]:
    """(opcode, statement): of every row the least that it takes, and the sweep's bases."""
    for row in OPCODES.rows:
        if row.missing or row.name.startswith("tcgen05."):
            continue
        for line in row.box:
            if not line.is_open and not line.missing:
                words = [slot.words[0] for slot in line.slots if slot.required]
                operands = opcodes.operands(row.name, line, words)
                yield row.name, opcodes.written(row.name, words, operands)
    for text in (*TCGEN05.split("\n")[1:-1], *(text for _, text in statements.bases())):
        found = OPCODES.find(instruction(text).opcode, len(instruction(text).operands))
        if found.opcode is not None:
            yield found.opcode.name, text


@cache
def instruction(text: str) -> Instruction:
    module = parse(f".version 9.2\n.target sm_90a\n.entry k() {{\n{text};\n}}")
    body = module.functions[0].body
    assert isinstance(body, Block)
    (found,) = body.items
    assert isinstance(found, Instruction)
    return found


def said(text: str) -> str:
    """A statement of the sweep as an operation, with what gives its inputs."""
    first = write_node(instruction(text).operands[0]) if instruction(text).operands else ""
    places: dict[str, str] = {}
    row = OPCODES.find(instruction(text).opcode, len(instruction(text).operands)).opcode
    results: list[str] = []
    if row is not None and row.writes and not first.startswith("["):
        results = [found[0] for found in _REGISTER.finditer(first)]
    opcode, _, rest = text.partition(" ")
    split = len(first) if results else 0
    inputs = list(dict.fromkeys(found[0] for found in _REGISTER.finditer(rest[split:])))
    for number, name in enumerate(results):
        places[name] = f"${number}"
    written = _REGISTER.sub(lambda found: places[found[0]], rest[:split])
    read = {name: f"${len(results) + number}" for number, name in enumerate(inputs)}
    rest = written + _REGISTER.sub(lambda found: read[found[0]], rest[split:])
    into, defined = "", ""
    if row is not None and row.accumulates:
        types = ", ".join(TYPES[name[1]] for name in results)
        into = f" into ({', '.join(f'%b{i}' for i in range(len(results)))} : {types})"
        for i, name in enumerate(results):
            type_ = TYPES[name[1]]
            defined += f"%z{i} = {value(type_)}\n%b{i} = ptx.copy %z{i} : {type_}\n"
    defined += "".join(f"%a{i} = {value(TYPES[n[1]])}\n" for i, n in enumerate(inputs))
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    names = f"{names} = " if names else ""
    types = ", ".join(TYPES[name[1]] for name in inputs)
    out = ", ".join(TYPES[name[1]] for name in results)
    given = ", ".join(f"%a{i}" for i in range(len(inputs)))
    return f'{defined}{names}ptx.op "{opcode} {rest}" ({given}){into} : ({types}) -> ({out})\n'


def value(type_: str) -> str:
    if not type_.startswith("!"):
        return f"ptx.zero : {type_}"
    return f'ptx.op "ld.shared.b{type_[10:-1]} $0, [$1]" (%s) : (i32) -> {type_}'


def kernel(body: str, name: str = "k") -> str:
    return f"func.func @{name}() attributes {{ptx.ntid = 128 : i64}} {{\n%s = ptx.zero : i32\n{body}func.return\n}}\n"


def operation(text: str) -> Operation:
    """The last operation of a body, as it was parsed and verified."""
    module = program.parse(kernel(text))
    assert isinstance(module, ModuleOp)
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    return [op for op in function.body.block.ops if isinstance(op, ptx.InstructionOp)][-1]


@cache
def sayable() -> dict[str, list[str]]:
    """The statements of every opcode that name nothing but registers, and that are legal."""
    found: dict[str, list[str]] = {name: [] for name in opcodes.names()}
    for name, text in dict.fromkeys(candidates()):
        if len(found.get(name, ())) >= (MOST if "mma" in name else 2):
            continue
        names = re.sub(r"%\w+(\.[xyzw])?|WARP_SZ", "", text.partition(" ")[2])
        plain = not re.search(
            r"(?<![0-9.])\b[A-Za-z_]\w+", re.sub(r"0[a-zA-Z][0-9A-F]+", "", names)
        )
        if plain and "%v" not in text:
            try:
                operation(said(text))
            except FragirError:
                continue
            found.setdefault(name, []).append(text)
    return found


def test_every_opcode_can_be_said() -> None:
    assert {name for name, texts in sayable().items() if not texts} - ELSEWHERE == set()
    assert sum(map(len, sayable().values())) > 250


def _target(text: str) -> str | None:
    for target in TARGETS:
        try:
            module_version({text.partition(" ")[0]: None}, target)
        except FragirError:
            continue
        return target
    return None


@pytest.mark.parametrize("target", TARGETS)
def test_it_is_written_and_ptxas_takes_it(target: str) -> None:
    texts = [t for many in sayable().values() for t in many if _target(t) == target]
    refused = opcodes.refused(texts, target)  # the sweep's guesses are not all legal
    texts = [text for text in texts if text not in refused]
    assert len(texts) > 10 * len(refused)
    bodies = "".join(f"scf.if %q {{\n{said(text)}}}\n" for text in texts)
    written = compile_program(kernel(f"%q = ptx.zero : i1\n{bodies}"), target=target).ptx
    body = parse(written).functions[0].body
    assert body is not None
    found = Counter(shape(write_node(i)) for i in body.items if isinstance(i, Instruction))
    wanted = Counter(shape(_STATEMENT.findall(said(text))[-1]) for text in texts)
    assert wanted - found == Counter()
    assemble(written, target)


def shape(text: str) -> str:
    """A statement with its places or registers numbered in the order in which they come."""
    numbers: dict[str, str] = {}
    text = write_node(instruction(text.rstrip(";")))
    return re.sub(
        r"%(?!tid|ctaid|clock|laneid)\w+|\$\d+",
        lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"),
        text,
    )


@pytest.mark.parametrize(
    ("text", "free", "speculated"),
    [
        ('%a = ptx.zero : i32\n%r = ptx.op "popc.b32 $0, $1" (%a) : (i32) -> i32\n', True, True),
        ('%r = ptx.op "mov.u32 $0, %laneid" () : () -> i32\n', True, True),
        ('%r = ptx.op "mov.u64 $0, %clock64" () : () -> i64\n', False, False),
        ('%r = ptx.op "mov.u32 $0, %globaltimer_lo" () : () -> i32\n', False, False),
        ('%r = ptx.op "activemask.b32 $0" () : () -> i32\n', False, False),
        ('%a = ptx.zero : i32\n%r = ptx.op "redux.sync.add.s32 $0, $1, -1" (%a) : (i32) -> i32\n', True, False),
        ('%r = ptx.op "ld.shared.b32 $0, [0]" () : () -> i32\n', False, False),
        ('%a = ptx.zero : i32\n%r = ptx.op "add.cc.u32 $0, $1, $1" (%a) : (i32) -> i32\n', False, False),
        ('%a = ptx.zero : i32\n%r = ptx.op "addc.u32 $0, $1, $1" (%a) : (i32) -> i32\n', False, False),
        ('ptx.op "bar.sync 0" () : () -> ()\n', False, False),
        ('%a = ptx.zero : i32\n%r = ptx.op "atom.shared.add.u32 $0, [0], $1" (%a) : (i32) -> i32\n', False, False),
    ],
)  # fmt: skip
def test_effects(text: str, free: bool, speculated: bool) -> None:
    op = operation(text)
    assert (is_side_effect_free(op), is_speculatable(op)) == (free, speculated)
