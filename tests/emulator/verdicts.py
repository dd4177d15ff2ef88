"""What ptxas says of statements with modifiers added, dropped or exchanged: `verdicts.txt`.

    python -m tests.emulator.verdicts        writes the file anew, by the newest ptxas that is found

A line is `taken` or `refused`, and a statement for the kernel of `test_legality.py`. Of all
changes of one word of the forms in `legality_forms.py` the file keeps, for each reason that the
emulator has to refuse a statement, some that ptxas refuses too, and some that both take. Where the
two disagree the file is silent: it says what holds, and `test_legality.py` how much does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.sweeps.statements import split
from fragir.ptx.opcodes.table import OPCODES

from .legality_forms import FORMS, REFUSED
from .test_legality import forms_of, listed, refusal, refused_by_ptxas

FILE = Path(__file__).with_name("verdicts.txt")
KEPT = 6  # refused statements of an opcode, for each reason that names no second word
TAKEN = 60  # taken statements of a family
TRIED, CHUNK = 3000, 500  # statements of a family that are tried, and those of one run of ptxas
TYPES = frozenset(
    "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2".split()
)


def opcode(statement: str) -> tuple[str, ...]:
    return tuple(statement.partition(" ")[0].rstrip(";").split("."))


def verdicts() -> list[tuple[bool, str]]:
    """(whether ptxas takes it, statement) of every line of the file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [(line.startswith("taken\t"), line.partition("\t")[2]) for line in lines]


def why_not(statement: str) -> str | None:
    """What the table has against a statement, without its mnemonic."""
    count = len(split(statement.partition(" ")[2].rstrip(";")))
    problem = OPCODES.find(opcode(statement), count).problem
    return problem.partition(": ")[2] or problem or None


def changed(family: str) -> Iterator[str]:
    """Every form of a family with one word dropped, added or exchanged; types stay."""
    bases: dict[frozenset[str], tuple[list[str], str]] = {}
    for form in forms_of(family):
        if not listed(form, REFUSED) and not form.startswith(("@", "mov")):
            words = list(opcode(form))
            bases.setdefault(frozenset(words) - TYPES, (words, form.partition(" ")[2]))
    for words, operands in bases.values():
        rows = [r for r in OPCODES.rows if r.head[0] == words[0]]
        known = {w for r in rows for w in (*r.head[1:], *(x for line in r.box for x in line.known))}
        end = len(words) - (len(words) > 1 and words[-1] in TYPES)
        places = [i for i in range(1, len(words)) if words[i] not in TYPES]
        made = [words, *(words[:i] + words[i + 1 :] for i in range(1, len(words)))]
        for word in sorted(known - TYPES):
            made.append([*words[:end], word, *words[end:]])
            made += [[*words[:i], word, *words[i + 1 :]] for i in places]
        for some in made:
            yield ".".join(some) + (f" {operands}" if operands else ";")


def chosen(family: str, random: Random) -> Iterator[tuple[bool, str]]:
    """What the file keeps of a family."""
    statements = list(dict.fromkeys(changed(family)))
    statements = random.sample(statements, min(TRIED, len(statements)))
    refused: set[str] = set()
    for first in range(0, len(statements), CHUNK):
        refused |= refused_by_ptxas(statements[first : first + CHUNK])
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    taken: list[str] = []
    for statement in statements:
        words = opcode(statement)
        reason = why_not(statement)
        if reason is not None and statement in refused:
            general = "is given twice" in reason or "is no modifier" in reason
            reasons[words[0], reason.partition(" ")[2] if general else reason].append(statement)
        elif reason is None and statement not in refused and refusal(statement) is None:
            taken.append(statement)
    for (_, reason), found in reasons.items():
        general = "given twice" in reason or "no modifier" in reason
        for statement in random.sample(found, min(KEPT if general else 1, len(found))):
            yield False, statement
    for statement in random.sample(taken, min(TAKEN, len(taken))):
        yield True, statement


def main() -> None:
    random = Random(0)
    lines = {
        f"{'taken' if taken else 'refused'}\t{statement}\n"
        for family in FORMS
        if family not in ("control", "special", "not there")
        for taken, statement in chosen(family, random)
    }
    FILE.write_text("".join(sorted(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
