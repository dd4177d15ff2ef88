"""What machine code does where: instructions, loops, and what stands between two waits.

ptxas may undo a schedule without a word: it hoists `wgmma.wait_group 0` above arithmetic that was
to run beside a product, or spills inside the main loop. Both can only be seen in SASS.

    loop = main_loop(disassemble(cubin))
    assert loop.counts["HGMMA"] == 4 and not loop.counts["LDL"]
    (stretch,) = between(loop.instructions, wgmma_wait(1), wgmma_wait(0))
    assert stretch["MUFU"] >= 32

`disassemble(with_lines(ptx, target), lines=True)` also has the line of PTX of every instruction
but the wgmma, which ptxas gives none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fragir.errors import FragirError

TENSOR = (
    *("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"),
    *("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
    *("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"),
)
"""Opcodes of the tensor cores: of a warp, of a warpgroup, of a thread."""

#: kind -> its opcodes; the first that has an opcode counts, the rest is "other".
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("tensor", "|".join(TENSOR)),
        ("spill", "LDL|STL"),
        ("ldmatrix", "LDSM"),
        ("stmatrix", "STSM"),
        ("shared", "LDS|STS|ATOMS"),
        ("cp.async", "LDGSTS"),
        ("tma", "UTMA.*|UBLKCP|UBLKRED|UBLKPF"),
        ("global", "LDG|STG|ATOMG|RED|REDG|LD|ST|ATOM"),
        ("mbarrier", "SYNCS"),
        ("wait", r"WARPGROUP\.DEPBAR|DEPBAR|LDGDEPBAR|UTMACMDFLUSH|WARPGROUP\.ARRIVE|WARPGROUP"),
        ("barrier", "BAR|WARPSYNC|NANOSLEEP|UCGABAR_ARV|UCGABAR_WAIT|ELECT"),
        ("fence", "MEMBAR|FENCE|ERRBAR|CCTL|CCTLL"),
        ("shuffle", "SHFL|MOVM|REDUX|VOTE|VOTEU|MATCH"),
        ("mufu", "MUFU"),
        ("float", "F(ADD|MUL|FMA|MNMX|MNMX3|SEL|SETP|SET|CHK|SWZADD)2?|D(ADD|MUL|FMA|SETP)"
         "|H(ADD2|MUL2|FMA2|MNMX2|SETP2|SET2)|F2F|F2FP|F2I|I2F|I2FP|FRND|F2IP|I2I|I2IP"),
        ("branch", "BRA|BRX|JMP|JMX|EXIT|RET|CALL|BSSY|BSYNC|BREAK|YIELD|BMOV|KILL|BPT|PREEXIT"),
        ("uniform", "U[A-Z0-9_]+|R2UR|S2UR|REDUX"),
        ("integer", "I[A-Z0-9]+|LEA|LOP3|LOP|SHF|SHL|SHR|PRMT|SEL|MOV|MOV32I|PLOP3|P2R|R2P|VIADD"
         "|VIADDMNMX|VIMNMX|VIMNMX3|POPC|FLO|BREV|BMSK|SGXT|S2R|CS2R|LDC|ISCADD|XMAD|VABSDIFF"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `HGMMA.64x256x16.F32` has the opcode `HGMMA`; `line` is of the PTX, `place`
    (file and line) what the PTX's `.loc` name."""

    address: int
    opcode: str
    text: str
    """As nvdisasm writes it, with its guard and operands."""
    line: int | None = None
    place: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class MachineLoop:
    """A loop and its instructions in their order, those of loops inside it too.

    `depth` is 1 outside; `innermost`: no loop is inside. A loop of several waits, as ptxas unrolls
    it, does the work of several rounds of the program.
    """

    function: str
    depth: int
    innermost: bool
    instructions: tuple[Instruction, ...]

    def is_in(self, other: MachineLoop) -> bool:
        """Whether this is a loop inside another."""
        own = {one.address for one in self.instructions}
        return self.function == other.function and own < {o.address for o in other.instructions}

    @property
    def counts(self) -> Counter[str]:
        """How often each opcode stands in it, as written, not as executed."""
        return Counter(one.opcode for one in self.instructions)

    @property
    def kinds(self) -> Counter[str]:
        """How many of its instructions are of each kind: see `kind_of`."""
        return Counter(kind_of(one.opcode) for one in self.instructions)

    @property
    def waits(self) -> tuple[str, ...]:
        """Its waits in their order, and what may be pending after each: `wgmma 1`, `cp.async 2`"""
        matches = (_WAIT.search(one.text) for one in self.instructions)
        return tuple(
            f"{'wgmma' if match[1] else 'cp.async'} {int(match[2], 16)}"
            for match in matches
            if match
        )

    @property
    def tensor(self) -> int:
        """Its tensor-core instructions."""
        return sum(self.counts[opcode] for opcode in TENSOR)


def kind_of(opcode: str) -> str:
    """What an opcode is for: `tensor`, `ldmatrix`, `integer`, ..., or `other`."""
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(opcode)), "other")


KINDS = (*(kind for kind, _ in _KINDS), "other")

_FUNCTION = re.compile(r"^\.text\.(.+):$")
_LINE = re.compile(r'^\s*//## File "(.*?)", line (\d+)')
_PTX = ".nv_debug_ptx_txt"
_LABEL = re.compile(r"^(\.L\w+):$")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+((?:@!?U?P\w+\s+)?([A-Z][\w.]*).*?)\s*;")
_TO = re.compile(r"[(, ](\.L\w+)")
_TWO_WORDS = ("WARPGROUP",)
_WAIT = re.compile(r"(WARPGROUP\.)?DEPBAR\.LE (?:gsb0|SB0), (0x[0-9a-f]+)$")


@dataclass(slots=True)
class _Function:
    """Instructions, and where labels stand among them."""

    instructions: list[Instruction]
    labels: dict[str, int]


def _read(sass: str) -> dict[str, _Function]:
    found: dict[str, _Function] = {}
    function, line, place = None, None, None
    for text in sass.splitlines():
        if match := _FUNCTION.match(text):
            function, line = found.setdefault(match[1], _Function([], {})), None
            place = None
        elif function is None:
            continue
        elif match := _LINE.match(text):
            if match[1] == _PTX:
                line = int(match[2])
            else:
                place = match[1], int(match[2])
        elif match := _LABEL.match(text):
            function.labels[match[1]] = len(function.instructions)
        elif match := _INSTRUCTION.match(text):
            words = match[3].split(".")
            name = ".".join(words[:2]) if words[0] in _TWO_WORDS else words[0]
            function.instructions.append(
                Instruction(int(match[1], 16), name, match[2], line, place)
            )
    return found


def instructions(sass: str) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of every function, without the padding after its end."""
    found = _read(sass)
    return {name: tuple(_trim(one).instructions) for name, one in found.items()}


def _trim(function: _Function) -> _Function:
    """Without the jump to itself and the NOPs that end a function."""
    own = function.instructions
    while own and (own[-1].opcode == "NOP" or _is_jump_to_itself(function, len(own) - 1)):
        own.pop()
    return function


def _is_jump_to_itself(function: _Function, index: int) -> bool:
    one = function.instructions[index]
    target = _TO.search(one.text)
    return one.opcode == "BRA" and target is not None and function.labels[target[1]] == index


# Loops -------------------------------------------------------------------------------------------


def loops(sass: str) -> list[MachineLoop]:
    """The loops of every function in the order of their heads, an outer one before those in it.

    They are the natural loops of the branches: code that ptxas moves behind a loop, as it does with
    the retry of a wait, belongs to it where it comes back.
    """
    found: list[MachineLoop] = []
    for name, function in _read(sass).items():
        found += _loops(name, _trim(function))
    return found


def main_loop(sass: str, function: str | None = None) -> MachineLoop:
    """The loop with the most tensor-core instructions of those that have no such loop in them.

    Loops in it that copy ragged edges belong to it. FragirError where there is none.
    """
    own = [one for one in loops(sass) if function in (None, one.function) and one.tensor]
    inner = [one for one in own if not any(other.is_in(one) for other in own)]
    best = max(inner, key=lambda loop: loop.tensor, default=None)
    if best is None:
        where = f" of {function}" if function else ""
        raise FragirError(
            f"the machine code{where} has no loop with tensor-core instructions",
            hint="a loop of few rounds may be unrolled; `fragir sass` lists those that there are",
        )
    return best


def _loops(name: str, function: _Function) -> list[MachineLoop]:
    own = function.instructions
    ways = _ways(function)
    before: dict[int, list[int]] = {}
    for start, after in ways.items():
        for to in after:
            before.setdefault(to, []).append(start)
    dominators = _dominators(ways, before)
    starts = sorted(ways)
    ends = dict(zip(starts, [*starts[1:], len(own)], strict=True))
    bodies: dict[int, set[int]] = {}
    for start, after in ways.items():
        for head in after:
            if head in dominators.get(start, ()):
                body = bodies.setdefault(head, {head})
                waiting = [start]
                while waiting:
                    block = waiting.pop()
                    if block not in body:
                        body.add(block)
                        waiting += before.get(block, ())
    result: list[MachineLoop] = []
    for head, body in sorted(bodies.items(), key=lambda pair: (pair[0], -len(pair[1]))):
        inside = [i for block in sorted(body) for i in range(block, ends[block])]
        depth = sum(body <= other for other in bodies.values())
        innermost = not any(other < body for other in bodies.values())
        result.append(MachineLoop(name, depth, innermost, tuple([own[i] for i in inside])))
    return result


def _ways(function: _Function) -> dict[int, list[int]]:
    """Where each basic block, named by its first instruction, goes on."""
    own, labels = function.instructions, function.labels
    meeting = _meetings(function)
    starts = {0, *(index for index in labels.values() if index < len(own))}
    starts |= {i + 1 for i, one in enumerate(own[:-1]) if kind_of(one.opcode) == "branch"}
    ways: dict[int, list[int]] = {}
    ordered = sorted(starts) if own else []
    for start, end in zip(ordered, [*ordered[1:], len(own)], strict=True):
        last = own[end - 1]
        after: list[int] = []
        # `CALL.REL.NOINC` of a label is how ptxas leaves a loop that is long; calls have names
        jump = last.opcode in ("BRA", "JMP", "BRX") or (
            last.opcode == "CALL" and _TO.search(last.text)
        )
        if jump:
            after += [labels[name] for name in _TO.findall(last.text)]
        elif last.opcode == "BSYNC":
            after += meeting.get(end - 1, [])
        ends = jump or last.opcode in ("EXIT", "RET", "BSYNC")
        always = ends and not last.text.startswith("@")
        # `BRA.DIV UR4, ...` and `BRA.U UP0, ...` hold a condition among their operands
        operands = last.text.split(None, 1)[-1]
        if not always or re.match(r"!?(UR|UP|P)\w", operands):
            after.append(end)
        ways[start] = [to for to in dict.fromkeys(after) if to < len(own)]
    return ways


def _meetings(function: _Function) -> dict[int, list[int]]:
    """Where each BSYNC goes: to what the last BSSY of its barrier that stands before it names."""
    named: dict[str, int] = {}
    found: dict[int, list[int]] = {}
    for index, one in enumerate(function.instructions):
        if match := re.search(r"BSSY\S* (B\d+), `\((\.L\w+)\)", one.text):
            named[match[1]] = function.labels[match[2]]
        elif one.opcode == "BSYNC" and (used := re.search(r"\bB\d+", one.text)):
            found[index] = [named[used[0]]] if used[0] in named else []
    return found


def _dominators(ways: dict[int, list[int]], before: dict[int, list[int]]) -> dict[int, set[int]]:
    """The blocks that every way from the entry to a block goes through; the block among them."""
    order: list[int] = []
    seen: set[int] = set()
    waiting = [(0, iter(ways.get(0, ())))] if ways else []
    seen.update(block for block, _ in waiting)
    while waiting:
        block, rest = waiting[-1]
        following = next((to for to in rest if to not in seen), None)
        if following is None:
            order.append(block)
            waiting.pop()
        else:
            seen.add(following)
            waiting.append((following, iter(ways[following])))
    order.reverse()
    found: dict[int, set[int]] = {0: {0}} if order else {}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [found[one] for one in before.get(block, ()) if one in found]
            new = set[int].intersection(*known) | {block}
            if found.get(block) != new:
                found[block], changed = new, True
    return found


# Waits -------------------------------------------------------------------------------------------


def wgmma_wait(pending: int) -> str:
    """How SASS writes `wgmma.wait_group`, for `between`."""
    return rf"WARPGROUP\.DEPBAR\.LE gsb0, {pending:#x}$"


def copy_wait(pending: int) -> str:
    """How SASS writes `cp.async.wait_group`, for `between`."""
    return rf"(?<!\.)DEPBAR\.LE SB0, {pending:#x}$"


def between(
    own: Sequence[Instruction], first: str, second: str, *, round: bool = False
) -> list[Counter[str]]:
    """Opcodes that stand between instructions like `first` and the next like `second`.

    Both are regular expressions that are searched in an instruction's text. One count for each
    `first` that is followed by a `second`; with `round`, the instructions are a loop's, after whose
    last comes its first. FragirError where there is none.
    """
    found: list[Counter[str]] = []
    for start in range(len(own)):
        if re.search(first, own[start].text) is None:
            continue
        rest = [*own[start + 1 :], *(own[: start + 1] if round else ())]
        for length, one in enumerate(rest):
            if re.search(second, one.text):
                found.append(Counter(one.opcode for one in rest[:length]))
                break
            if re.search(first, one.text):
                break
    if not found:
        raise FragirError(f"nothing like `{first}` stands before anything like `{second}`")
    return found


_NEED = re.compile(r"^\s*([A-Za-z][\w.]*)\s*(>=|<=|=)\s*(\d+)\s*$")


def missed(counts: Counter[str], needs: Iterable[str]) -> list[str]:
    """Which of the needs do not hold: `HGMMA=4`, `MUFU>=32`, `spill=0` (an opcode or a kind).

    A sentence for each that does not. FragirError for what is no need.
    """
    kinds: Counter[str] = Counter()
    for opcode, number in counts.items():
        kinds[kind_of(opcode)] += number
    said: list[str] = []
    for need in needs:
        match = _NEED.match(need)
        if match is None or not (match[1] in KINDS or match[1].isupper()):
            raise FragirError(
                f"`{need}` is no condition",
                hint=f"write HGMMA=4, MUFU>=32 or spill=0; the kinds are {', '.join(KINDS)}",
            )
        has = kinds[match[1]] if match[1] in KINDS else counts[match[1]]
        number = int(match[3])
        if not {"=": has == number, ">=": has >= number, "<=": has <= number}[match[2]]:
            said.append(f"{match[1]} {match[2]} {number} is wanted, there are {has}")
    return said


# -- spills ----------------------------------------------------------------------------------------
# Where values are spilled: the line of PTX whose code has most of the loads and stores.


def most_spilled(ptx: str, target: str, function: str) -> int | None:
    """The line (1-based) of the PTX with the most accesses to local memory in its machine code.

    None where nvdisasm is missing, or the accesses are of no line. Takes another run of ptxas.
    """
    from fragir.toolchain.ptxas import with_lines
    from fragir.toolchain.sass import disassemble

    try:
        sass = disassemble(with_lines(ptx, target), lines=True)
    except FragirError:
        return None
    lines = Counter(
        one.line
        for one in instructions(sass).get(function, ())
        if one.opcode in ("LDL", "STL") and one.line is not None
    )
    return lines.most_common(1)[0][0] if lines else None
