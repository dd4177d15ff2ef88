"""One row for an opcode: its legal words and operands, what it computes, what checks must know.

The emulator's checks, and the effects of operations in the dialects, are read off the row: what the
instruction does with bits, addresses, lanes and memory. `Opcodes` finds the row of an instruction,
or says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from fragir.ptx.opcodes.syntax import REPEATED, SETS, Line, Reading, Words, lines
from fragir.ptx.tree import Instruction

#: From a decoder and an instruction to its step.
Decode: TypeAlias = Callable[[Any, Instruction], Any]
#: Columns that several rows have alike.
Columns: TypeAlias = dict[str, Any]
#: What is wrong with the words of an opcode; None: nothing.
Rule: TypeAlias = Callable[[frozenset[str]], str | None]
#: The constant that an operand is; None where it is none.
Constant: TypeAlias = Callable[[int], int | None]


def is_always(words: Words, constant: Constant) -> bool:
    return True


def is_never(words: Words, constant: Constant) -> bool:
    return False


def by_bytes(*operands: int) -> Callable[[Words, Constant], bool]:
    """Where these operands are constants, and multiples of 8."""

    def whole(words: Words, constant: Constant) -> bool:
        amounts = [constant(i) for i in operands]
        return all(a is not None and a % 8 == 0 for a in amounts)

    return whole


class Moves(NamedTuple):
    """Every bit of the result is a bit of an operand, or its sign.

    `steering`: the operands that choose which; `whole`: whether bytes stay whole.
    """

    steering: tuple[int, ...] = ()
    whole: Callable[[Words, Constant], bool] = is_never


class Logic(NamedTuple):
    """A truth table over a = 0xF0, b = 0xCC, c = 0xAA; None: the fifth operand is the table."""

    table: int | None
    operands: int


#: The tables of and, or, xor, not.
LOGIC: dict[str, Logic] = {
    "and": Logic(0xC0, 2),
    "or": Logic(0xFC, 2),
    "xor": Logic(0x3C, 2),
    "not": Logic(0x0F, 1),
}

#: What the bits of the result are made of, and where bits go that are no result.
#: mixed: each of any bit of the operands; halves: the upper half of the first operand, the lower
#: one of the second; warp: of any bit of any lane. The others are steps of their own in the checks.
Bits: TypeAlias = (
    Moves
    | Logic
    | Literal[
        "mixed",
        "halves",
        "warp",
        "load",
        "store",
        "fill",
        "load fragment",
        "store fragment",
        "atomic",
        "store later",
        "shuffle",
        "matrix",
        "wgmma",
        "mbarrier",
        "new mbarrier",
        "copy",
        "bulk copy",
        "tensor",
        "tensor load",
        "tensor store",
        "results",
    ]
)
#: What address comes out of addresses: their sum, the first less the second, the third and no
#: product of the others, the first as it is, the first shifted right, either of the first two, the
#: first or second masked, a number whatever goes in; unknown: a number of numbers alone.
Address: TypeAlias = Literal[
    "sum", "difference", "product", "same", "shifted", "either", "masked", "number", "unknown"
]


@dataclass(eq=False)  # not frozen, which takes four times as long: every start makes 240
class Opcode:
    """`name`: the words it begins with; `syntax`: see `syntax.py`.

    `decode`: what it computes, as text (`fragir/emulator/values/language.py`), or a function from
    the emulator's decoder and a statement to its step; rows of ours name their `step` instead. A
    row without either ends a block, or is not emulated, `missing` being why.
    """

    name: str
    syntax: str = ""
    decode: Decode | str | None = None
    _: KW_ONLY
    #: Its step, by the name that the emulator's tables have for it.
    step: str = ""
    rules: tuple[Rule, ...] = ()
    missing: str = ""
    #: Words that ptxas takes beside those of the ISA, which gives them no meaning; and `SKIPPED`.
    beside: str = ""
    #: These follow from what it computes where it is a text; else "mixed" and "unknown".
    bits: Bits | None = None
    address: Address | None = None
    #: Two equal operands give a result that does not depend on them.
    cancels: bool = False
    #: The lanes that must come together: the whole warp, or those of the membermask that is the
    #: last operand.
    together: Literal["", "warp", "members"] = ""
    #: How it accesses the memory that its first address operand names, in lanes of their own.
    access: Literal["", "load", "store", "atomic"] = ""
    #: How a straight piece of the program ends here.
    ends: Literal[
        "", "branch", "call", "return", "exit", "trap", "barrier", "cluster barrier", "allocation"
    ] = ""
    #: It starts, or is told of, what happens later: copies, mbarriers.
    asynchronous: bool = False
    #: Its accesses are strong (section 8.4), whatever its words say.
    strong: bool = False
    #: It reads through a cache that other threads' writes do not reach.
    read_only: bool = False
    #: What a fence orders.
    fence: Literal["", "memory", "alias", "asynchronous", "initialisations", "tensor maps"] = ""
    #: Its accesses are made by the asynchronous proxy (section 8.6).
    by_proxy: bool = False
    #: What it does with the tensor map that an operand names.
    tensor_map: Literal["", "uses", "changes"] = ""
    #: Whether it can see what another thread will do: always, or where it names an order.
    polls: Literal["", "always", "ordered"] = ""
    #: The four warps of a warpgroup add to its result, later.
    accumulates: bool = False
    #: Neighbours that do not depend on each other are one step.
    fuses: bool = False
    #: It needs the lane's stack.
    stack: bool = False
    #: It changes how many registers the threads of its warp hold.
    registers: bool = False
    #: It may take a cluster off the launch.
    takes_cluster: bool = False
    #: Registers wider than its types will do (section 9.4.1).
    wider: bool = False
    #: Its result is no value made of values of the same lane.
    apart: bool = False

    def __repr__(self) -> str:
        return f"<opcode {self.name}{f', {self.missing}' if self.missing else ''}>"

    @cached_property
    def head(self) -> Words:
        return tuple(self.name.split("."))

    @property
    def box(self) -> tuple[Line, ...]:
        return lines(self.syntax)

    @cached_property
    def known(self) -> frozenset[str]:
        """The modifiers that it has in some form."""
        return frozenset(word for line in self.box for word in line.known)

    def takes(self, word: str) -> bool:
        return word in self.known

    @cached_property
    def writes(self) -> bool:
        """Whether its first operand is written."""
        operands = self.box[0].operands
        return bool(operands) and operands[0].is_written


class Found(NamedTuple):
    """What a table says of an opcode with some number of operands.

    `words`: the opcode in the row's order; `problem` and `hint`: why it is refused, and a way out;
    `line`: the line of the row that it is.
    """

    opcode: Opcode | None
    words: Words
    problem: str = ""
    hint: str | None = None
    line: Line | None = None


#: What is said of an opcode that ptxas takes and nothing here executes.
NOT_EMULATED = " is not emulated: "
#: What ptxas skips nearly everywhere.
SKIPPED = ("pred", "b2", "b8x16", "b6x16_p32", "b4x16_p64")
#: Letters of a line that is shown to a user.
LONGEST = 200


class Opcodes:
    """A table of opcodes."""

    def __init__(
        self, rows: Iterable[Opcode], elsewhere: Callable[[str], Iterable[Opcode]] | None = None
    ) -> None:
        """`elsewhere` is asked once for rows whose name begins with a word that no row has."""
        self._elsewhere = elsewhere
        self._asked: set[str] = set()
        self.rows: list[Opcode] = []
        #: Changes with every row that is added or taken out.
        self.version = 0
        self._first: dict[str, list[Opcode]] = {}
        self._found: dict[tuple[Words, int | None], Found] = {}
        self._rows: dict[tuple[Words, int], Opcode] = {}  # of what was found
        for row in rows:
            self.register(row)

    def register(self, row: Opcode) -> None:
        """Add a row; several may have one name, and differ in their types."""
        self.rows.append(row)
        self.version += 1
        self._first.setdefault(row.head[0], []).append(row)
        self._found.clear()
        self._rows.clear()

    def remove(self, row: Opcode) -> None:
        """Take a row out that was added."""
        self.rows.remove(row)
        self.version += 1
        left = [r for r in self._first.pop(row.head[0]) if r is not row]
        if left:
            self._first[row.head[0]] = left
        self._found.clear()
        self._rows.clear()

    def of(self, instruction: Instruction) -> Opcode:
        """The row of an instruction. ValueError where there is none, which launches exclude."""
        try:
            return self._rows[instruction.opcode, len(instruction.operands)]
        except KeyError:
            self.find(instruction.opcode, len(instruction.operands))
        found = self._rows.get((instruction.opcode, len(instruction.operands)))
        if found is None:
            raise ValueError(f"{instruction.mnemonic} has no row")
        return found

    def find(self, opcode: Words, operands: int | None = None) -> Found:
        """The row of an opcode with that many operands (None: any), or why there is none."""
        key = (opcode, operands)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._find(opcode, operands)
            if found.opcode is not None and operands is not None:
                self._rows[opcode, operands] = found.opcode
        return found

    def _find(self, opcode: Words, operands: int | None) -> Found:
        mnemonic = ".".join(opcode)
        if opcode[0] not in self._first:
            self._ask(opcode[0])
        named = [r for r in self._first.get(opcode[0], ()) if opcode[: len(r.head)] == r.head]
        if not named:
            return self._gap(opcode) or Found(None, opcode, *self._unknown_problem(opcode))
        length = max(len(r.head) for r in named)
        named = [r for r in named if len(r.head) == length]
        given = frozenset(opcode)
        name = opcode[:length]
        rest = [w for w in opcode[length:] if w not in REPEATED or w not in name]
        nearest: tuple[Opcode, Reading, str] | None = None
        fitting: list[tuple[Opcode, Reading]] = []
        for row in named:
            for line in row.box:
                reading = line.read(rest, row.known)
                broken = next((t for rule in row.rules if (t := rule(given))), "")
                if not reading.problems and not broken:
                    if operands is None or operands in line.counts(given):
                        text = row.missing or line.missing
                        if text:
                            problem = f"{mnemonic}{NOT_EMULATED}{text}"
                            return Found(None, row.head + reading.words, problem)
                        return Found(row, row.head + reading.words, line=line)
                    fitting.append((row, reading))
                if nearest is None or reading.rank > nearest[1].rank:
                    nearest = row, reading, next(iter(reading.problems), broken)
        if fitting and operands is not None:
            return Found(None, opcode, *_miscount_problem(mnemonic, given, operands, fitting))
        beside = {*SKIPPED, *(w for row in named for w in row.beside.split())}.intersection(rest)
        beside -= {w for row in named for line in row.box for w in line.known}
        if beside:
            found = self.find((*name, *(w for w in rest if w not in beside)), operands)
            if found.opcode is not None or NOT_EMULATED in found.problem:
                text = f"what .{' and .'.join(sorted(beside))} means there is not documented"
                return Found(None, opcode, f"{mnemonic}{NOT_EMULATED}{text}")
        if (gap := self._gap(opcode)) is not None:
            return gap
        assert nearest is not None
        row, reading, problem = nearest
        text = f"there is no instruction {mnemonic}: {problem.format(row.name)}"
        return Found(None, opcode, text, _hint(row, reading, opcode))

    def _gap(self, opcode: Words) -> Found | None:
        """What is said of an opcode that ptxas takes and no row has."""
        from fragir.ptx.opcodes.gaps import gap_of  # which only what has no row needs

        gap = gap_of(opcode)
        if gap is None:
            return None
        return Found(None, opcode, f"{'.'.join(opcode)}{NOT_EMULATED}{gap.what}")

    def _ask(self, word: str) -> None:
        if self._elsewhere is not None and word not in self._asked:
            self._asked.add(word)
            for row in self._elsewhere(word):
                self.register(row)

    def _unknown_problem(self, opcode: Words) -> tuple[str, str | None]:
        mnemonic = ".".join(opcode)
        rows = self._first.get(opcode[0])
        if rows is None:
            import difflib

            near = difflib.get_close_matches(opcode[0], self._first, 3)
            hint = f"similar: {', '.join(near)}" if near else None
            return f"the instruction {mnemonic} is not known", hint
        length = max(_common_words(r.head, opcode) for r in rows)
        names = list(dict.fromkeys(r.name for r in rows if r.head[:length] == opcode[:length]))
        wrong = "it lacks one"
        if len(opcode) > length:
            wrong = f".{opcode[length]} is no modifier of {'.'.join(opcode[:length])}"
        return f"there is no instruction {mnemonic}: {wrong}", f"there is {', '.join(names)}"


def _common_words(one: Words, other: Words) -> int:
    """How many words they begin with are the same."""
    return next((i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), len(one))


def _miscount_problem(
    mnemonic: str, given: frozenset[str], operands: int, fitting: list[tuple[Opcode, Reading]]
) -> tuple[str, str]:
    counts = sorted({n for _, reading in fitting for n in reading.line.counts(given)})
    numbers = " or ".join(map(str, counts))
    row, reading = fitting[0]
    text = f"{mnemonic} takes {numbers} operand{'s' * (counts != [1])}, not {operands}"
    return text, f"it is written {row.name}{reading.line}"


def _hint(row: Opcode, reading: Reading, opcode: Words) -> str | None:
    """Words like the wrong ones, or the line that comes nearest."""
    words = sorted({w for line in row.box for w in line.known})
    wrong = [w for w in opcode[len(row.head) :] if w not in words]
    for word in wrong:
        import difflib

        if near := difflib.get_close_matches(word, words, 1):
            return f"did you mean .{near[0]}?"
    text = f"it is written {row.name}{reading.line}"
    return text if len(text) <= LONGEST else None


# -- rules -----------------------------------------------------------------------------------------
# What must hold between the words of an opcode beside the slots that they stand in.


def needs(words: str, others: str) -> Rule:
    """Any of `words` is there only with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: frozenset[str]) -> str | None:
        found = sorted(first & opcode)
        if found and not second & opcode:
            return f".{found[0]} needs .{', .'.join(sorted(second))}"
        return None

    return rule


def rule_apart(words: str, others: str) -> Rule:
    """None of `words` goes together with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: frozenset[str]) -> str | None:
        a, b = sorted(first & opcode), sorted(second & opcode)
        return f".{a[0]} and .{b[0]} exclude each other" if a and b else None

    return rule


def width(opcode: frozenset[str]) -> str | None:
    """Vectors have at most 16 bytes, in global memory 32; hints for L2 lines need those."""
    count = next((int(w[1:]) for w in sorted(opcode) if w in ("v2", "v4", "v8")), 1)
    kind = next((w for w in sorted(opcode) if w in _VALUES), "b8")
    bits = int(kind[1:]) * count
    wide = (count, kind[1:]) in ((8, "32"), (4, "64"))
    if bits > 128 and not wide:
        return f".v{count} of .{kind} is too wide"
    if wide and opcode & frozenset("local shared shared::cta shared::cluster const".split()):
        return "256 bits at once are for .global"
    if not wide and opcode & frozenset(SETS["EVICT2"].split("|")):
        return "eviction priorities of L2 need .v8.b32 or .v4.b64"
    return None


_VALUES = frozenset(SETS["VALUE"].split("|"))
SCOPE = SETS["SCOPE"].replace("|", " ")
L1 = SETS["EVICT1"].replace("|", " ")
HINT = SETS["HINT"]
TX = SETS["TX"]
