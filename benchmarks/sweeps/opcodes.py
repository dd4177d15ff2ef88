# ruff: noqa: E501 - a statement is not broken
"""Every opcode of the emulator with every word, type and operand count: refused where ptxas refuses.

A task is an opcode. Its statements are all combinations of the words of its rows (of many, as many
as `most` says), each with the operand counts that the rows know, and some with a word doubled or
foreign, a type exchanged, an operand more or less. Those that no target's ptxas takes the emulator
must refuse before it runs anything; the others it must run, or refuse as "not emulated".
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.sweeps import statements
from fragir.emulator import run as emulate
from fragir.emulator.numbers.types import DTYPES
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError
from fragir.ptx.opcodes.syntax import SPACES, TYPES, Line
from fragir.ptx.opcodes.table import OPCODES
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.toolchain.find import PTXAS, execute, find

#: Together they have every opcode; in the newest `.version`.
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
#: Statements of one run of ptxas.
BATCH = 2000
#: Words of other opcodes, and of none.
FOREIGN = "bogus sync rn wide v2 global sat cc relu volatile cta lt".split()
_LETTERS = {1: "p", 8: "c", 16: "h", 32: "r", 64: "d", 128: "q"}
_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
#: Operands by their names in the rows, where their type does not say it all.
_OPERANDS = {
    **dict.fromkeys(("members", "mask", "given"), "%r1"),
    **dict.fromkeys(("left", "right"), "%r1"),
    **{"i": "0x1b", "n": "0", "label": "END", "labels": "TABLE"},
    **{"blocks": "%h1", "p": "%d3", "bytes": "16", "count": "1", "ns": "100", "part": "0.5"},
    **{"align": "16", "stride": "16"},
}
#: The same for one opcode, by the first words that name it.
_OWN: dict[str, dict[str, str]] = {
    "setp": {"c": "%p3"},
    "lop3": {"q": "%p3"},
    "createpolicy": {"b": "%r1", "c": "%r1"},
    "cp.async.ca": {"size": "4"},
    "cp.async.cg": {"size": "16"},
    "cp": {"size": "64", "c": "%h1"},
    "discard": {"size": "128"},
    "applypriority": {"size": "128"},
    "fence": {"size": "128"},
    "tensormap.cp_fenceproxy": {"size": "128"},
    "st.bulk": {"size": "%d1", "b": "0"},
    "bar": {"a": "1", "b": "64", "p": "%p1"},
    "barrier": {"a": "1", "b": "64", "p": "%p1"},
    "mbarrier.pending_count": {"state": "%d1"},
    "cvta": {"a": "%d1"},
    "setmaxnreg": {"n": "24"},
    "mapa": {"b": "%r1"},
    "brx": {"a": "%r1"},
    "alloca": {"size": "64"},
}
#: Of tensor cores, whose words go together in few ways: statements whose words are changed.
_TENSOR = ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix")
_BASES = [s for _, s in statements.bases() if s.split(".")[0] in _TENSOR]


def names() -> list[str]:
    """The opcodes of the table, those that nobody emulates apart."""
    return list(dict.fromkeys(r.name for r in OPCODES.rows if not r.missing and " " not in r.name))


def _own(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        found |= _OWN.get(".".join(parts[:length]), {})
    return found


def operands(name: str, line: Line, words: Sequence[str]) -> list[str]:
    """The operands of a line, all that go with the words."""
    types = [w for w in words if w in TYPES]
    spaces = [w for w in words if w in SPACES]
    own, found, addresses = _own(name), list[str](), 0
    many = next((int(w[1]) for w in words if w in ("v2", "v4", "v8")), 0)
    for index, operand in enumerate(line.operands):
        if operand.needs and operand.needs.isdisjoint(words):
            continue
        key, kind = operand.name, operand.kind
        if key in own or key in _OPERANDS:
            found.append(own.get(key) or _OPERANDS[key])
            continue
        if key == "[t]":
            rank = (
                5
                if any("4" in w for w in words if "::" in w and "tile" in w)
                else next((int(w[0]) for w in words if w in ("1d", "2d", "3d", "4d", "5d")), 1)
            )
            found.append("[%d0, {" + ", ".join(["%r1"] * rank) + "}]")
            addresses += 1
            continue
        if key == "offsets":
            rank = next((int(w[0]) for w in words if w in ("3d", "4d", "5d")), 3)
            found.append("{" + ", ".join(["%h1"] * (rank - 2)) + "}")
            continue
        if key.startswith("["):
            space = spaces[min(addresses, len(spaces) - 1)] if spaces else ""
            shared = "[%r2]" if key == "[m]" else "[%r0]"
            found.append(shared if "shared" in space or (key == "[m]" and addresses) else "[%d0]")
            addresses += 1
            continue
        if kind.isdigit():
            kind = types[int(kind) - 1] if len(types) >= int(kind) else "b32"
        elif kind == "wide":
            kind = _WIDE.get(types[-1] if types else "", "b64")
        elif kind in ("", "v"):
            kind = (types[0] if operand.is_written else types[-1]) if types else "b32"
        if kind == "f32x4":
            found.append("{%r4, %r5, %r6, %r7}")
            continue
        if kind == "imm":
            found.append("0x1b")
            continue
        width = DTYPES[kind][1] if kind in DTYPES else 32
        letter = _LETTERS[width]
        texts = [f"%{letter}{i}" for i in range(index, index + max(many, 1))]
        vector = (many and not name.startswith(("clusterlaunch",))) or (
            name.endswith("ctaid") and operand.is_written
        )
        if name.endswith("get_first_ctaid") and operand.is_written:
            texts = ["%r4", "%r5", "%r6", "%r7"]
        text = "{" + ", ".join(texts) + "}" if vector else texts[0]
        if "|" in key:
            text += "|%p7"
        found.append(text)
    return found


def _nearest(box: Sequence[Line], words: Sequence[str]) -> Line:
    readings = [line.read(words) for line in box]
    return max(readings, key=lambda r: (not r.problems, r.rank)).line


def written(name: str, words: Iterable[str], operands: Sequence[str]) -> str:
    return ".".join((name, *words)) + (f" {', '.join(operands)}" if operands else "")


def of_opcode(name: str, most: int, random: Random) -> list[str]:
    """Statements of an opcode: all that its words allow, and some that they do not."""
    rows = [r for r in OPCODES.rows if r.name == name]
    box = [line for r in rows for line in r.box]
    if name.split(".")[0] in _TENSOR:
        return _of_tensor(name, most, random)
    groups = _groups(box)
    choices = [["", *g] for g in groups]
    spaces = _products(box, SPACES)
    types = _products(box, TYPES)
    sizes = [*(len(c) for c in choices), len(spaces), len(types)]
    total = 1
    for size in sizes:
        total *= size
    made: dict[str, None] = {}

    def add(words: Sequence[str], change: str = "") -> None:
        line = _nearest(box, words)
        given = operands(name, line, words)
        counts = line.counts(words)
        if change == "more":
            given.append("%r1")
        elif change == "less":
            given = given[:-1]
        elif change == "none":
            given = []
        elif given and change and line.operands[0].is_written and given[0][0] != "{":
            given[0] = change.format(given[0].partition("|")[0])
        made[written(name, words, given)] = None
        if not change and counts and counts[0] < len(given) and line.operands[-1].optional:
            made[written(name, words, given[: counts[0]])] = None

    every: Iterator[tuple[Any, ...]] | list[tuple[Any, ...]]
    if total <= most:
        every = list(product(*choices, spaces, types))
    else:
        every = [tuple(random.choice(c) for c in (*choices, spaces, types)) for _ in range(most)]
    combined = [(tuple(w for w in some[:-2] if w), some[-2], some[-1]) for some in every]
    for modifiers, space, kinds in combined:
        add((*modifiers, *space, *kinds))
    kin = sorted(_kin(name.partition(".")[0]))
    legal = [line for line in box for _ in range(max(2, most // (2 * len(box)), most // 40))]
    for line in legal:  # what a random word would seldom hit
        words = [random.choice(s.words) for s in line.slots if s.required or random.random() < 0.4]
        add(words)
        add(words, random.choice(("more", "less", "none")))
        add(words, random.choice(("_", "_|%p7", "{}|_", "{}|%p7", "{}")))
        at = random.randrange(len(words) + 1)
        add([*words[:at], random.choice(FOREIGN), *words[at:]])
        add([*words[:at], random.choice(kin), *words[at:]])
        if words:
            at = random.randrange(len(words))
            add([*words[:at], random.choice(words), *words[at:]])
            add([*words[:at], *words[at + 1 :]])
            add([*words[:at], random.choice(kin), *words[at + 1 :]])
            add(random.sample(words, len(words)))
            if words[at] in TYPES:
                add([*words[:at], random.choice(sorted(TYPES)), *words[at + 1 :]])
    return list(made)


@cache
def _kin(first: str) -> frozenset[str]:
    """Words of all opcodes that begin with the same one."""
    return TYPES.union(
        w for r in OPCODES.rows if r.head[0] == first for x in r.box for w in x.known
    )


def _of_tensor(name: str, most: int, random: Random) -> list[str]:
    bases = [s for s in _BASES if s.startswith(name + ".")]
    made: dict[str, None] = dict.fromkeys(bases)
    every = sorted({w for s in bases for w in s.partition(" ")[0].split(".")[1:]} | set(FOREIGN))
    for base in bases:
        head = len(name.split("."))
        opcode, _, rest = base.partition(" ")
        words = opcode.split(".")[head:]
        for at in range(len(words)):
            made[f"{name}.{'.'.join(words[:at] + words[at + 1 :])} {rest}"] = None
            for word in random.sample(every, min(12, len(every))):
                made[f"{name}.{'.'.join([*words[:at], word, *words[at + 1 :]])} {rest}"] = None
                made[f"{name}.{'.'.join([*words[:at], word, *words[at:]])} {rest}"] = None
    return [s.rstrip() for s in made][:most]


def _groups(box: Sequence[Line]) -> list[list[str]]:
    """Words that stand in one slot of some line."""
    groups: list[set[str]] = []
    for line in box:
        for slot in line.modifiers:
            group = set(slot.words)
            for other in [g for g in groups if g & group]:
                group |= other
                groups.remove(other)
            groups.append(group)
    return [sorted(g) for g in groups]


def _products(box: Sequence[Line], ordered: frozenset[str]) -> list[tuple[str, ...]]:
    """All types (or spaces) that the slots of one length of line can have together."""
    slots: dict[int, list[set[str]]] = {}
    for line in box:
        found = [s for s in line.slots if s.within(ordered)]
        known = slots.setdefault(len(found), [set() for _ in found])
        for into, slot in zip(known, found, strict=True):
            into.update(slot.words, () if slot.required else ("",))
    made: dict[tuple[str, ...], None] = {}
    for known in slots.values():
        for words in product(*map(sorted, known)):
            made[tuple(w for w in words if w)] = None
    return list(made)


@cache
def _ptxas() -> str:
    return str(find(PTXAS).path)


def refused(texts: Sequence[str], target: str, begin: str = statements.HEAD) -> set[str]:
    """The statements that ptxas does not assemble for a target, all in one kernel."""
    head = begin.format(target=target)
    start = head.count("\n") + 1
    text = head + "".join(f"{t};\n" for t in texts) + "MORE:\nEND: ret;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.ptx")
        path.write_text(text, "utf-8")
        done = execute([_ptxas(), f"-arch={target}", "-O0", str(path), "-o", "/dev/null"])
    if done.returncode == 0:
        return set()
    lines = re.findall(r"line (\d+); (?:error|fatal)", done.stderr)
    lines += re.findall(r"32-bit address on line '(\d+)'", done.stderr)
    bad = {texts[int(n) - start] for n in lines if 0 <= int(n) - start < len(texts)}
    if bad:  # some errors are told only when there are no others
        return bad | refused([t for t in texts if t not in bad], target, begin)
    if len(texts) == 1:
        return set(texts)
    half = len(texts) // 2
    return refused(texts[:half], target, begin) | refused(texts[half:], target, begin)


def taken(texts: Sequence[str]) -> dict[str, str]:
    """The statements that ptxas assembles, and the first target that it does so for."""
    found: dict[str, str] = {}
    for target in TARGETS:
        left = [t for t in texts if t not in found]
        for first in range(0, len(left), BATCH):
            part = left[first : first + BATCH]
            bad = refused(part, target)
            found |= {t: target for t in part if t not in bad}
    return found


def verdict(statement: str, target: str) -> tuple[str, str]:
    """(refused, missing, failed or ran, what is said) of one statement in a kernel that runs."""
    text = statements.HEAD.format(target=target) + f"{statement};" + statements.TAIL.format()
    threads = 128 if "wgmma" in statement else 32
    try:
        emulate(text, arguments=[bytes(64)], block=(threads,), limit=2000)
    except EmulationError as error:
        if "is not emulated" in error.message:
            return "missing", error.message
        ran = error.warp is not None or error.kind != "stopped" or " in k, block " in error.message
        return ("ran" if ran else "refused"), error.message
    except FragirError as error:
        return "failed", error.message
    return "ran", ""


def judge(name: str, most: int, random: Random) -> Result:
    """What is wrong with an opcode; how many statements, and what is not emulated."""
    texts = of_opcode(name, most, random)
    legal = taken(texts)
    counts, findings, missing = Counter[str](), list[str](), list[str]()
    for text in texts:
        target = legal.get(text)
        how, said = verdict(text, target or TARGETS[1])
        counts["taken" if target else "refused"] += 1
        if target is None and how == "ran":
            findings.append(f"ptxas refuses {text}")
        elif target is not None and how == "refused":
            findings.append(f"ptxas takes {text}: {said}")
        elif how == "failed":
            findings.append(f"{text}: {said}")
        elif how == "missing" and target is not None:
            missing.append(text)
    return {
        "statements": len(texts),
        "taken": counts["taken"],
        "refused": counts["refused"],
        "not_emulated": len(missing),
        "listed": missing,
        "findings": findings,
    }


def tasks(plan: Plan) -> Sequence[Any]:
    only = str(plan.parameters.get("only") or "")
    return sample([n for n in names() if not only or re.fullmatch(only, n)], plan)


def run(task: Task) -> Result:
    return judge(task.what, task.parameters["most"], task.random())


SWEEP = Sweep(tasks, run, {"most": 300, "only": ""}, seconds=600.0)
