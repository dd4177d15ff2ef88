"""Mutated matrix programs: PTX or one clear error with its place, soon and in little memory.

Bases are the examples and the golden programs. A mutant drops, doubles, swaps or changes tokens,
drops, doubles or moves lines, or takes a stretch of another program.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from fragir import compiler
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import SECONDS, attempt

ROOT = Path(__file__).parents[2]
SEPARATOR = "// -----\n"
TARGETS = ("sm_70", "sm_80", "sm_80", "sm_80", "sm_90a", "sm_90a", "sm_120a")

_TOKEN = re.compile(r'//[^\n]*|"[^"\n]*"|[%@!#^][\w.$]+|-?\d+\.\d+|(?<=[\d?])x|\d+|[\w.]+|\s+|.')
_NUMBER = re.compile(r"(?<!%)(?<![%\w]\w)\d+(?!\.\d)")
_TYPE = re.compile(
    r"(?<![\w.%@])(?:b?f16|tf32|f32|f64|[su]?i\d+|index)\b|(?<=\dx)(?:b?f16|tf32|f32|f64|[su]?i\d+)\b"
)
_NUMBERS = (
    *("0", "1", "2", "3", "7", "8", "16", "17", "24", "32", "64", "128", "256", "1024", "4096"),
    *("65536", "-1", "-8", "2147483647", "2147483648", "4294967296", "9223372036854775807"),
    *("18446744073709551616", "9" * 30, "?"),
)
_TYPES = (
    *("f16", "bf16", "tf32", "f32", "f64", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "f6E3M2FN"),
    *("i1", "i8", "i16", "i32", "i64", "si8", "ui8", "si4", "ui4", "ui1", "index", "none"),
    *("vector<2xf32>", "vector<1000000000xf32>", "!frag.tile<16x16xf16>", "!ptx.ptr<shared>"),
    *("memref<?x?xf16>", "tensor<16x16xf32>", "complex<f32>", "tuple<>", "f128", "i999999"),
    *("memref<16x16xf16, #frag.shared>", "memref<*xf32>", "!frag.packed<f4E2M1FN>", "f8E8M0FNU"),
)
_OPERATIONS = (
    *("frag.load", "frag.store", "frag.mma", "frag.wgmma", "frag.fill", "frag.cast", "frag.map"),
    *("frag.convert", "frag.copy", "frag.commit", "frag.wait", "frag.barrier", "frag.view"),
    *(
        "frag.matmul",
        "frag.mma_batched",
        "frag.mma_sparse",
        "frag.yield",
        "frag.block_id",
        "scf.for",
        "scf.if",
    ),
    *(
        "frag.reduce",
        "frag.reduce_by",
        "frag.broadcast",
        "frag.iota",
        "frag.gather",
        "frag.scatter",
        "frag.atomic",
        "frag.scan",
    ),
    *("frag.transpose", "frag.reshape", "frag.slice", "frag.concat", "frag.split", "frag.join"),
    *(
        "scf.while",
        "scf.condition",
        "scf.yield",
        "func.return",
        "func.func",
        "func.call",
        "arith.addf",
        "arith.addi",
    ),
    *("arith.constant", "arith.select", "arith.index_cast", "memref.alloc", "memref.dim", "cf.br"),
    *("linalg.matmul", "linalg.generic", "linalg.fill", "linalg.yield", "tensor.empty", "math.exp"),
    *("ptx.load", "ptx.store", "ptx.mma", "ptx.offset", "ptx.sync", "ptx.shared", "ptx.special"),
    *(
        "memref.load",
        "memref.store",
        "memref.subview",
        "memref.cast",
        "gpu.thread_id",
        "affine.for",
    ),
)
_JUNK = (
    *('"', "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "->", "=", "%0", "%a", "@f", "!a"),
    *("#frag.shared", "#frag.shared<swizzle = 128>", "#frag.mma<m16n8k16.f16, a>", "loc(unknown)"),
    *('#frag.layout<"lane [4:(0,2) 8:(1,0)] element [2:(0,1)]">', "dense<0>", "array<i64: 2, 2>"),
    *("strided<[?, 1]>", "affine_map<(d0, d1) -> (d1, d0)>", "attributes {frag.warps = 3}"),
    *("é", "\0", "²", "\\", "'", ";", "&", "0x", "1e999", "nan", "-0.0", "\t", "\r\n", "//", "/*"),
    *("masked", "transposed", "broadcast", "async", "using", "epilogue", "sparse", "^bb0", "unit"),
    *("(" * 90, "{" * 90, "[" * 90, "vector<" * 90),
)


@cache
def programs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The programs that mutants come from, right ones and such as are refused, in a fixed order."""
    right = [path.read_text("utf-8") for path in sorted(ROOT.glob("examples/*.mlir"))]
    refused: list[str] = []
    for path in sorted(ROOT.glob("tests/golden/*.mlir")):
        head, *others = path.read_text("utf-8").split(SEPARATOR)
        refused += [head + other for other in others]
        right += [] if others else [head]
    return tuple(right), tuple(refused)


def mutant(rng: random.Random) -> str:
    """One program with one to four changes, which is not what it was."""
    right, refused = programs()
    original = text = rng.choice(right if rng.random() < 0.8 else refused)
    while text == original:
        for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 4))):
            text = rng.choices(_CHANGES, _WEIGHTS)[0](rng, text)
    return text


def _split(text: str) -> tuple[list[str], list[int]]:
    """The tokens, and the places of those that mean something."""
    tokens = _TOKEN.findall(text)
    real = [i for i, token in enumerate(tokens) if token.strip() and not token.startswith("//")]
    return tokens, real


def _tokens(rng: random.Random, text: str) -> str:
    """Drops, doubles, swaps or replaces tokens."""
    tokens, real = _split(text)
    if len(real) < 2:
        return text
    at, other = rng.choice(real), rng.choice(real)
    match rng.randrange(6):
        case 0:
            tokens[at] = ""
        case 1:
            tokens[at] += " " + tokens[at]
        case 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = tokens[other]
        case 4:
            tokens[at] = rng.choice(_JUNK)
        case _:
            tokens[at] += " " + rng.choice(_JUNK)
    return "".join(tokens)


def _replace(rng: random.Random, text: str, pattern: re.Pattern[str], new: str | None) -> str:
    """Another text for one match of a pattern, or for all that are like it."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    chosen = rng.choice(found)
    alike = [chosen] if rng.random() < 0.4 else [m for m in found if m[0] == chosen[0]]
    if new is None:
        number = int(chosen[0])
        near = (number + 1, number - 1, number * 2, number * 2, number // 2, number * 1024)
        new = str(rng.choice(near)) if rng.random() < 0.6 else rng.choice(_NUMBERS)
    for match in reversed(alike):
        text = text[: match.start()] + new + text[match.end() :]
    return text


def _number(rng: random.Random, text: str) -> str:
    """Another number: of a shape, an index, an attribute, an instruction's name."""
    return _replace(rng, text, _NUMBER, None)


def _type(rng: random.Random, text: str) -> str:
    """Another type."""
    return _replace(rng, text, _TYPE, rng.choice(_TYPES))


def _word(rng: random.Random, text: str) -> str:
    """Another operation, value, string or word at a place where there is one."""
    tokens, real = _split(text)
    kinds = {
        "operation": (_OPERATIONS, [i for i in real if tokens[i] in _OPERATIONS]),
        "value": ((), [i for i in real if tokens[i][0] == "%"]),
        "string": ((), [i for i in real if tokens[i][0] == '"']),
        "word": ((), [i for i in real if tokens[i].isalpha() and len(tokens[i]) > 2]),
    }
    kind = rng.choice([name for name, (_, places) in kinds.items() if places] or [""])
    if not kind:
        return text
    choices, places = kinds[kind]
    at = rng.choice(places)
    if kind == "string":
        inner = tokens[at][1:-1]
        cut = rng.randrange(len(inner) + 1)
        tokens[at] = '"' + rng.choice((inner[:cut], inner[cut:], inner + inner[:cut], "")) + '"'
    else:
        tokens[at] = rng.choice(choices or [tokens[i] for i in places])
    return "".join(tokens)


def _lines(rng: random.Random, text: str) -> str:
    """Drops, doubles, moves or swaps lines."""
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines.insert(other, lines.pop(at))
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _splice(rng: random.Random, text: str) -> str:
    """A stretch of lines of another program, put in."""
    lines, others = text.split("\n"), rng.choice(programs()[0]).split("\n")
    at, start = rng.randrange(len(lines) + 1), rng.randrange(len(others))
    lines[at:at] = others[start : start + rng.choice((1, 1, 2, 4, 10))]
    return "\n".join(lines)


_CHANGES = (_number, _type, _word, _lines, _tokens, _splice)
_WEIGHTS = (9, 4, 3, 2, 1, 1)


def to_kernel(text: str, target: str) -> None:
    """As `fragir.compile` does it."""
    compiler.compile(text, target=target, filename="mutant.mlir")


def to_lanes(text: str, target: str) -> None:
    """All functions of the text, verified after every pass, and then as PTX."""
    module = compiler.parse(text, "mutant.mlir")
    compiler.lower(module, "placed", target, source=text, observe=_nothing)
    compiler.lower(module, "lane", target, source=text, observe=_nothing)
    compiler.emit(module, target, source=text)


def _nothing(name: str, module: object) -> None:
    """With an observer, the module is verified after every pass."""


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    """A batch of mutants, each compiled twice: as a kernel, and all functions level by level."""
    counts = {"mutants": 0, "compiled": 0, "without_place": 0}
    findings: list[str] = []
    for number in range(task.parameters["batch"]):
        rng = random.Random(f"{task.seed}/{task.index}/{number}")
        text, target = mutant(rng), rng.choice(TARGETS)
        counts["mutants"] += 1
        # golden files have dozens of kernels, each of which is lowered and verified anew
        allowed = max(SECONDS, 0.4 * text.count("func.func"))
        for way in (to_kernel, to_lanes):
            trial = attempt(partial(way, text, target), seconds=allowed)
            counts["compiled"] += trial.error is None and trial.finding is None
            counts["without_place"] += trial.error is not None and trial.error.line is None
            if trial.finding is not None:
                findings.append(f"mutant {number}, {target}, {way.__name__}: {trial.finding}")
    return {**counts, "findings": findings}


SWEEP = Sweep(tasks, run, {"batch": 50}, seconds=300.0)
