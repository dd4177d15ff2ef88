"""Every mnemonic of the tensor cores with words dropped, doubled, exchanged and foreign ones.

A task is a family and a number of mnemonics, legal ones and mutants of them. ptxas and the emulator
are asked about each, for each of `TARGETS`, with the operands of the form that it is (of a mutant
that the emulator refuses: those of what it was made of): neither may take what the other refuses,
but for what is in `LAX` and `STRICT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from random import Random
from typing import Any

from benchmarks.sweeps.opcodes import FOREIGN, refused
from fragir.emulator.launch.launch import Launch
from fragir.emulator.tensor_cores import (
    Ldmatrix,
    Mma,
    Movmatrix,
    Stmatrix,
    TensorOp,
    Wgmma,
    WmmaAccess,
    mma,
    tensor_instruction,
    wgmma,
    wmma,
)
from fragir.errors import FragirError
from fragir.ptx.opcodes.row import NOT_EMULATED
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.reader import parse
from fragir.sweeps import Plan, Result, Sweep, Task, sample

#: Together they have every form.
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
FAMILIES = (
    *("mma", "wmma.mma", "wmma.load.a", "wmma.load.b", "wmma.load.c", "wmma.store.d"),
    *("wgmma.mma_async", "ldmatrix", "stmatrix", "movmatrix"),
)
#: Mnemonics of a task.
MANY = 400
#: What the emulator takes and ptxas refuses, and the other way: the reasons, by a pattern.
LAX = {r" wgmma\S*\.popc\S*\.and": "ptxas wants .and before .popc there, not of mma and wmma"}
STRICT = {
    r" mma\S*(\.(xor|popc)\S*\.[su]4|\.[su]4\S*\.(xor|popc))": "not in the ISA",
    r" mma(\.\w+)*(\.\w?[fsu](4|8|16|32|64)){5}": "nor a fifth type",
}
HEAD = """.version 9.2
.target {target}
.address_size 64
.visible .entry k() {{
    .shared .align 128 .b8 sh[8192];
    .reg .pred %p<2>; .reg .b32 %r<256>; .reg .b64 %d<16>;
"""

# -- legal mnemonics -------------------------------------------------------------------------------


def _product(rows: Sequence[Any], *columns: str) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield from product(*(sorted(row[column]) for column in columns))


def _mma() -> Iterator[str]:
    columns = ("product", "product", "kind", "part", "shape")
    for row in mma.FORMS.rows:
        for a, b, kind, part, shape in _product([row], *columns):
            for results, scale in product(sorted(row["results"]), sorted(row["scale"])):
                d, c = results.split(".")
                vector, _, stored = scale.partition(".")
                words = [shape, "row.col", *([f"kind::{kind}"] if kind != "-" else [])]
                words += ["block_scale", f"scale_vec::{vector}"] if stored else []
                types = [d, a, b, c, *([stored] if stored else [])]
                for sp in ("sp", "sp::ordered_metadata") if part == "sparse" else ("",):
                    for more in ("", "satfinite", "xor.popc", "and.popc", "rz"):
                        said = ["mma", *([sp] if sp else []), "sync", "aligned", *words, *types]
                        yield ".".join([*said, more] if more else said)
    for layouts in product(("row", "col"), repeat=2):
        yield f"mma.sync.aligned.m8n8k4.{'.'.join(layouts)}.f32.f16.f16.f32"


def _wgmma() -> Iterator[str]:
    for a, b, depth, d in _product(wgmma.FORMS.rows, "product", "product", "depth", "results"):
        for n, sp, more in product(
            (8, 16, 24, 40, 128), ("", "sp."), ("", "satfinite", "and.popc")
        ):
            k = int(depth[1:]) * (2 if sp else 1)
            text = f"wgmma.mma_async.{sp}sync.aligned.m64n{n}k{k}.{d}.{a}.{b}"
            yield f"{text}.{more}" if more else text


def _wmma() -> Iterator[str]:
    columns = ("product", "product", "shape", "results", "results")
    for a, b, shape, d, c in _product(wmma.FORMS.rows, *columns):
        types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
        for layouts in product(("row", "col"), repeat=2):
            for more in ("", ".satfinite", ".xor.popc", ".and.popc", ".rn"):
                yield f"wmma.mma.sync.aligned.{'.'.join(layouts)}.{shape}.{types}{more}"


def _of_box(name: str) -> Iterator[str]:
    shapes = {word for row in wmma.FORMS.rows for word in row["shape"]}
    for row in (row for row in OPCODES.rows if row.name == name):
        for line in row.box:
            slots = [
                [
                    w
                    for w in ("", *s.words)
                    if (w or not s.required) and ("k" not in w or w in shapes)
                ]
                for s in line.slots
            ]
            for words in product(*slots):
                yield ".".join((name, *filter(None, words)))


@cache
def operation(mnemonic: str) -> TensorOp | None:
    for target in TARGETS:
        try:
            return tensor_instruction(tuple(mnemonic.split(".")), target)
        except FragirError:
            continue
    return None


@cache
def legal(family: str) -> tuple[str, ...]:
    """Those that some target has."""
    makers = {"mma": _mma, "wgmma.mma_async": _wgmma, "wmma.mma": _wmma}
    found = makers[family]() if family in makers else _of_box(family)
    return tuple(each for each in dict.fromkeys(found) if operation(each) is not None)


# -- mutants ---------------------------------------------------------------------------------------


@cache
def _words() -> tuple[str, ...]:
    """Of all families, and of none."""
    known = {word for family in FAMILIES for each in legal(family) for word in each.split(".")}
    return tuple(sorted(known | {*FOREIGN, "kind::i8", "scale_vec::8X", "m16n8k256", "f8x2"}))


def mutant(mnemonic: str, family: str, random: Random) -> str:
    """A mnemonic with a word dropped, doubled, put in or in the place of another, or moved."""
    head = len(family.split("."))
    words = mnemonic.split(".")
    at, other = (random.randrange(head, len(words)) for _ in range(2))
    match random.randrange(5):
        case 0:
            del words[at]
        case 1:
            words.insert(at, words[other])
        case 2:
            words.insert(at, random.choice(_words()))
        case 3:
            words[at] = random.choice(_words())
        case _:
            words[at], words[other] = words[other], words[at]
    return ".".join(words)


# -- statements ------------------------------------------------------------------------------------


def _vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def operands(op: TensorOp) -> str:
    """Operands that fit a form."""
    match op:
        case Mma():
            vectors = (op.d, op.a, op.b, op.c)
            found = [_vector("d" if v.width == 64 else "r", v.count) for v in vectors]
            found += [f"%r1, {op.selectors[0]}"] if op.e else []
            found += ["%r1, {0, 0}, %r2, {0, 0}"] if op.scales else []
            return ", ".join(found)
        case Wgmma():
            found = [_vector("r", op.d.count), "%d1", "%d2", *(["%r1, 0"] if op.e else []), "%p1"]
            found += ["1, 1"] if op.scales_inputs else []
            found += ["0, 0"] if op.transposes else []
            return ", ".join(found)
        case WmmaAccess():
            registers = _vector("d" if op.r.width == 64 else "r", op.r.count)
            place = "[sh]" if any(w.startswith("shared") for w in op.opcode) else "[%d1]"
            return f"{registers}, {place}" if "load" in op.opcode else f"{place}, {registers}"
        case Ldmatrix():
            return f"{_vector('r', op.r.count)}, [sh]"
        case Stmatrix():
            return f"[sh], {_vector('r', op.r.count)}"
        case Movmatrix():
            return "%r1, %r2"
        case _:
            raise AssertionError(op)


def statement(mnemonic: str, base: str) -> str:
    op = operation(mnemonic) or operation(base)
    assert op is not None
    return f"{mnemonic} {operands(op)}"


def refusal(text: str, target: str) -> str | None:
    """Why the emulator refuses a statement; None where it takes it."""
    module = HEAD.format(target=target) + f"{text};\nret;\n}}\n"
    given: dict[str, Any] = {"grid": (1, 1, 1), "block": (128, 1, 1), "cluster": (1, 1, 1)}
    given |= {"arguments": [], "shared": 0, "target": None, "seed": None, "resident": 4}
    try:
        Launch(parse(module), "k", asynchrony="late", trace=None, **given)
    except FragirError as error:
        return error.message
    return None


def judge(texts: Sequence[str]) -> dict[str, list[str]]:
    """What is taken by one alone, `lax` by the emulator, `strict` by ptxas; and what by both."""
    found: dict[str, list[str]] = {"lax": [], "strict": [], "taken": []}
    for target in TARGETS:
        bad = refused(texts, target, HEAD)
        for text in texts:
            said = refusal(text, target)
            # A syntax error may be told of the line behind it.
            if (text in bad) != (said is not None) and text in bad:
                bad -= {text} - refused([text], target, HEAD)
            if said is not None and NOT_EMULATED in said:
                continue
            if (text in bad) == (said is not None):
                found["taken"] += [] if said else [text]
                continue
            kind, reasons = ("lax", LAX) if said is None else ("strict", STRICT)
            if not any(re.search(pattern, f"{target} {text}") for pattern in reasons):
                found[kind].append(f"{target} {text}" + (f": {said}" if said else ""))
    return found


def drawn(family: str, count: int, random: Random) -> list[str]:
    """Legal statements, and three times as many mutants, `count` together."""
    bases = [random.choice(legal(family)) for _ in range(count)]
    made = [
        statement(base if i % 4 == 0 else mutant(base, family, random), base)
        for i, base in enumerate(bases)
    ]
    return list(dict.fromkeys(made))


def tasks(plan: Plan) -> Sequence[Any]:
    only, rounds = str(plan.parameters.get("only") or ""), plan.parameters["rounds"]
    families = [family for family in FAMILIES if not only or re.fullmatch(only, family)]
    return sample([(family, number) for number in range(rounds) for family in families], plan)


def run(task: Task) -> Result:
    family, _ = task.what
    found = judge(drawn(family, MANY, task.random()))
    findings = [f"ptxas refuses {text}" for text in found["lax"]]
    findings += [f"ptxas takes {text}" for text in found["strict"]]
    return {"family": family, "taken": len(found["taken"]), "findings": findings}


SWEEP = Sweep(tasks, run, {"rounds": 20, "only": ""}, seconds=60.0)
