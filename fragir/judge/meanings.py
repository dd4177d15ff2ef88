"""What verdicts and findings mean, why a finding is a fault, and how it is mended as a rule.

The one place for it: docs/for-agents.md and the tool `explain_finding` of `fragir mcp` are made of
it, and SARIF has it as help. What a finding is, in a sentence, stands where it is found (`KINDS` of
the emulator's report, of the judge and of what ptxas says).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from fragir.emulator.report import KINDS as FINDINGS
from fragir.emulator.report import OF_SEVERAL_RUNS
from fragir.errors import FragirError
from fragir.toolchain.verdicts import KINDS as OF_PTXAS

Word: TypeAlias = Literal["pass", "fail", "incomplete", "unsupported"]
Document: TypeAlias = dict[str, Any]

# -- verdicts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerdictMeaning:
    """What a verdict says, and what who wrote the kernel does next; `exit_code`: of the command."""

    exit_code: int
    means: str
    then: str


#: Exit codes; 2 is wrong usage or a broken case.
EXIT: dict[Word, int] = {"pass": 0, "fail": 1, "incomplete": 3, "unsupported": 4}

_VERDICTS: dict[Word, tuple[str, str]] = {
    "pass": (
        "no finding; the same function as the reference, or within a bound that rounding allows;"
        " every launch came to its end",
        "read `equality`, `schedules`, `data`, `coverage` and `untried`: it holds for no more than"
        " these say. Add the sizes that `untried` proposes, and judge with `strict`",
    ),
    "fail": (
        "an error or a broken rule of the checks, another function, an output that is not written"
        " or depends on what stood there, an input that has changed",
        "mend the first reason of verdict `fail` at its line, then judge again with the same seed:"
        " later reasons often follow from it. Change no case to make it pass",
    ),
    "incomplete": (
        "something could not be decided: bits of data used as integers, an instruction whose"
        " outcome is up to the schedule, a limit, no bound; nothing launched, an empty output, a"
        " reference that gives back its input or the same for all inputs; with `strict` also"
        " statements that were not executed and guards that went one way",
        "no pass. The reasons say what was not decided: change the kernel where it hides it, the"
        " case where that says too little, or the limit. Else report it as not judged",
    ),
    "unsupported": (
        "an instruction or mode that the emulator refuses by name, machine code without PTX",
        "write the kernel without it, or judge it elsewhere: nothing is known of it here",
    ),
}

VERDICTS: dict[str, VerdictMeaning] = {
    word: VerdictMeaning(EXIT[word], means, then) for word, (means, then) in _VERDICTS.items()
} | {
    "no verdict": VerdictMeaning(
        2,
        "wrong usage, or a case that is broken: it raises, hangs, does not fit the kernel",
        "mend the case, or the call: of the kernel nothing is said",
    )
}
"""By word; `no verdict` is an error in place of a document."""

# -- findings --------------------------------------------------------------------------------------

#: kind -> what it means, of reasons that are no findings of the emulator's checks.
REASONS: dict[str, str] = {
    "syntax": "the file is no PTX, or PTX that ptxas refuses",
    "unsupported": "an instruction or mode that the emulator refuses by name",
    "result": "an element is another function of the inputs than the reference's, or farther from "
    "it than rounding explains",
    "rounding": "the same function, farther from the reference than the case's formats explain",
    "unwritten": "an element of an output that the kernel has not written",
    "stale": "an element of an output depends on what stood there before",
    "modified": "an input, or memory beside an output, has changed",
    "undecided": "whether an element is right could not be decided; the message says why",
    "opaque": "bits of data are used as integers: which function it is could not be followed",
    "choice": "what happens is up to the schedule",
    "nothing": "nothing was launched, or nothing came of it",
    "trivial": "the reference gives back an input, or the same whatever its inputs",
    "not covered": "with --strict: a statement was not executed, or a guard went one way only",
}

Row: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class FindingMeaning:
    """A kind of finding, or of reason.

    `means`: what it is; `why`: why that is a fault; `mend`: the usual cure; `section`: of the PTX
    ISA (9.2), by title, "" where it is of no section.
    """

    name: str
    means: str
    why: str
    mend: str
    section: str = ""

    def document(self) -> Document:
        found = {"name": self.name, "means": self.means, "why": self.why, "mend": self.mend}
        return {**found, "section": self.section or None}


_MEMORY = "Memory Consistency Model (8)"
_PROXY = "Async Proxy (Memory Consistency Model, 8)"
_BARRIERS = "bar, barrier (Parallel Synchronization, 9.7.13)"
_MBARRIER = "mbarrier (9.7.13.15)"
_COPIES = "Asynchronous copies: completion mechanisms (9.7.9.25)"
_WGMMA = "Asynchronous warpgroup instructions (9.7.15)"

#: kind -> why it is a fault, how it is mended, the section of the ISA.
_ROWS: dict[str, Row] = {
    # what the emulator's checks find
    "uninitialised": (
        "what is computed of it is whatever the machine held, and differs from run to run",
        "write it on every path before its use; where lanes or rows beyond the problem read it,"
        " fill with zeros or guard the read",
        "State Spaces (5.1)",
    ),
    "fragment": (
        "the product multiplies elements of other rows or columns than its matrix has there",
        "load each lane's registers by the fragment layout of the instruction (`fragir layout"
        " MNEMONIC OPERAND`), or by ldmatrix; look at strides and swizzle first",
        "Matrix fragments (9.7.14)",
    ),
    "race": (
        "in another schedule the read gets the other value, or the other write stays",
        "put what orders the two between them: bar.sync or an mbarrier between warps,"
        " bar.warp.sync between lanes, a wait for a copy or product, release and acquire between"
        " blocks; in loops a second barrier, before the place is written again",
        _MEMORY,
    ),
    "read-only": (
        "the read-only cache need not see what the kernel writes",
        "load these bytes by ld.global, without .nc",
        "ld.global.nc (9.7.9)",
    ),
    "proxy-fence": (
        "the asynchronous proxy need not see what threads wrote by ordinary stores",
        "fence.proxy.async between the stores and the barrier behind which the copy or wgmma is"
        " issued, by the threads that stored",
        _PROXY,
    ),
    "pending-source": (
        "the copy or product may read what was written afterwards",
        "wait before the place is used again: cp.async.bulk.wait_group.read, wgmma.wait_group, or"
        " the mbarrier of the consumer",
        _COPIES,
    ),
    "pending-copy": (
        "the bytes are there at some time only, and were not yet",
        "cp.async.wait_group and a barrier, or a wait for the mbarrier of the copy, before the use",
        _COPIES,
    ),
    "mbarrier": (
        "its phases and counts mean nothing, or other threads count with what is no mbarrier",
        "one thread initialises it with the number of arrivals of a phase, fences"
        " (fence.mbarrier_init or a barrier), and nobody touches its bytes otherwise; expected"
        " bytes are those of the copies",
        _MBARRIER,
    ),
    "divergent": (
        "the instruction is undefined, or waits for lanes that do not come",
        "move it out of the divergent branch, or name the lanes that come in its membermask",
        _BARRIERS,
    ),
    "wgmma-fence": (
        "wgmma may read the registers before they are written",
        "wgmma.fence.sync.aligned before the first wgmma, and wherever its registers were written",
        "wgmma.fence (9.7.15)",
    ),
    "wgmma-registers": (
        "until the product is complete its registers hold neither old nor new values",
        "wgmma.commit_group and wgmma.wait_group before they are read or written",
        _WGMMA,
    ),
    "cluster-barrier": (
        "an arrival without its wait counts in a phase that others wait for",
        "each thread takes turns: arrive, wait, arrive, wait; the last arrival has its wait too",
        "barrier.cluster (9.7.13)",
    ),
    "schedule": (
        "this run ended well, another one waits for ever or takes data of another phase",
        "let who waits say so before the next phase can end: an `empty` mbarrier on which every"
        " consumer arrives behind its wait; one elected lane, or bar.warp.sync behind a wait of 32",
        _MBARRIER,
    ),
    "tensor-memory": (
        "columns belong to whoever allocated them: another block gets those that are used without,"
        " and those that are kept are nobody's",
        "one warp allocates, all use what its answer in shared memory says, the same warp gives"
        " back as many columns, and then relinquish_alloc_permit; D begins at a lane that its shape"
        " allows",
        "Tensor memory (9.7.16)",
    ),
    "pending-tensor": (
        "until the product or copy is done nobody knows what these columns hold",
        "tcgen05.commit to an mbarrier, and a wait for its phase, before tcgen05.ld or .st",
        "tcgen05 (9.7.16)",
    ),
    "registers": (
        "the warp waits for registers that nobody gives back, or for ever",
        "let producers give back (setmaxnreg.dec) what consumers take (.inc); both counts are"
        " multiples of 8, and their sum over all warps is within what the launch gave",
        "setmaxnreg (Miscellaneous Instructions)",
    ),
    "operand": (
        "the instruction is undefined with it",
        "the message has the operand and what it may hold",
        "that of the instruction",
    ),
    "unretired": (
        "nobody knows that it is done: its bytes may come after the memory has another owner",
        "wait for all groups, and for mbarriers of copies, before the thread exits",
        _COPIES,
    ),
    "out-of-bounds": (
        "it reads or changes what is another's, or the kernel stops",
        "guard the tail (index < size), look at the grid and at strides in elements or bytes",
        "State Spaces (5.1)",
    ),
    "misaligned": (
        "the kernel stops",
        "align the base (`.align`), and keep strides multiples of the access's width; else a"
        " narrower access",
        "Addresses as Operands (6.4.1)",
    ),
    "deadlock": (
        "the kernel never ends",
        "`why` names the cycle: who waits for which phase, and who has not come to it. Counts of"
        " arrivals, parities, and branches around a barrier are the usual causes",
        _BARRIERS,
    ),
    "limit": (
        "nothing is known of what comes behind",
        "a loop that does not end is a fault; else a smaller case, or a higher limit",
        "",
    ),
    "stopped": (
        "the kernel goes no further",
        "the message names the instruction and what it met",
        "that of the instruction",
    ),
    "bank-conflict": (
        "the access takes several passes; the result is right",
        "swizzle or pad the layout (`fragir layout TEXT --view memory --access ...`)",
        "",
    ),
    "uncoalesced": (
        "more of memory is moved than is used; the result is right",
        "let neighbouring lanes access neighbouring words",
        "",
    ),
    # what several runs show
    "schedule-dependent": (
        "the result is up to the machine",
        "mend the races and broken rules first; else the order of atomics decides: make the order"
        " of sums fixed, or say that it is not meant to be",
        _MEMORY,
    ),
    # what ptxas does to the schedule
    "serialized": (
        "products that were to overlap wait for each other; the result is right",
        "the message says what forces it: an accumulator that is read or moved too early",
        _WGMMA,
    ),
    "injected-wait": (
        "the product is waited for earlier than written; the result is right",
        "wait yourself where the message points, or keep the registers out of branches",
        _WGMMA,
    ),
    "injected-fence": (
        "another version of ptxas puts none there",
        "write wgmma.fence where it is missing",
        "wgmma.fence (9.7.15)",
    ),
    "setmaxnreg": (
        "the registers that were to move stay: roles have fewer than meant, the result is right",
        "give the kernel .maxntid or .reqntid and .maxnreg, as the message says",
        "setmaxnreg (Miscellaneous Instructions)",
    ),
    "spill": (
        "local memory is slow; the result is right",
        "fewer live values a thread: smaller tiles, more warps, or setmaxnreg",
        "",
    ),
    # what the judge says beside
    "syntax": (
        "no machine runs it",
        "the message has the place, and what ptxas would say",
        "Syntax (4)",
    ),
    "unsupported": (
        "nothing is known of what it does",
        "write it without, or judge it elsewhere; `list_supported` has what is refused",
        "",
    ),
    "result": (
        "the kernel computes something else",
        "the message has the element, its value and the reference's; look which terms are in one"
        " only: a bound one off, a mask, a scale, a missing tile, an index",
        "",
    ),
    "rounding": (
        "digits are lost that the formats do not explain",
        "sum in a wider format, or say in the case what is meant: `working`, `sums`",
        "",
    ),
    "unwritten": (
        "what stood there before is taken for a result",
        "look at grid and guards: which block writes that element",
        "",
    ),
    "stale": (
        "a sum begins with what the buffer happened to hold",
        "store the first value, or zero the output; if it is meant to be added to, it is an input"
        " too",
        "",
    ),
    "modified": (
        "who calls it does not expect that",
        "write to outputs only, within their ends",
        "",
    ),
    "undecided": (
        "it may be right or not",
        "the message says why: give the case an `rtol`, other inputs, or a reference of known"
        " functions",
        "",
    ),
    "opaque": (
        "arithmetic on bits of floats hides which function it is",
        "where it is meant (packing, hashing), a case with `rtol` is judged by numbers; else"
        " compute with floats",
        "",
    ),
    "choice": (
        "one run does not speak for the others",
        "for locks, look-back and grid barriers it stays; else no atomic's result, strong load or"
        " clock may decide what is done",
        _MEMORY,
    ),
    "nothing": (
        "there is nothing that could be wrong",
        "launch the kernel, on problems that have elements",
        "",
    ),
    "trivial": (
        "a kernel that does nothing would be right too",
        "a reference that computes; `copies=True` where copying is the task",
        "",
    ),
    "not covered": (
        "what was not executed was not judged",
        "more cases: sizes of the kinds in `untried`, tails, loops of many turns",
        "",
    ),
}


def meanings() -> dict[str, FindingMeaning]:
    """By kind, all findings and reasons: those of the emulator, of several runs, of ptxas, of the
    judge."""
    told = {**FINDINGS, **OF_SEVERAL_RUNS, **OF_PTXAS, **REASONS}
    return {name: FindingMeaning(name, means, *_ROWS[name]) for name, means in told.items()}


#: What a finding may be, beside its kind: `Severity` of the emulator's report.
SEVERITIES: dict[str, str] = {
    "error": "wrong results are possible",
    "letter": "wrong by a sentence of the PTX ISA, which the message quotes, and harmless on every"
    " machine known; `strict` makes it a fault",
    "remark": "it costs time only",
}


# -- asked by name ---------------------------------------------------------------------------------

_RULE = re.compile(r"\brule ([A-F])\b")


def explain(asked: str | Document) -> Document:
    """What a name means: of a kind, a verdict, a rule (A to F), a severity, or a sentence of the
    ISA that a letter quotes; or a finding itself, a dictionary with its `kind`.

    Raises FragirError where there is no such name.
    """
    if isinstance(asked, str):
        return _of_text(asked)
    kind = asked.get("kind", asked.get("verdict"))
    if not isinstance(kind, str):
        raise FragirError("a finding has a `kind`", hint="or give its name alone")
    found = _by_name(kind)
    if found is None:
        raise _unknown(kind)
    told = {name: asked[name] for name in ("message", "file", "line", "col") if name in asked}
    severity = asked.get("severity")
    if isinstance(severity, str) and severity in SEVERITIES:
        told["severity"] = f"{severity}: {SEVERITIES[severity]}"
    for rule in _RULE.findall(json.dumps(asked)):
        told["rule"] = _by_name(rule)
    return {**found, "of": told} if told else found


def _of_text(asked: str) -> Document:
    text = asked.strip()
    if text.startswith("{"):
        try:
            found: object = json.loads(text)
        except ValueError as error:
            raise FragirError(f"this is no JSON: {error}") from error
        if isinstance(found, dict):
            return explain(cast("Document", found))
    named = _by_name(text) or _by_name(text.lower()) or _by_name(text.upper())
    if named is None:
        raise _unknown(text)
    return named


def _by_name(name: str) -> Document | None:
    from fragir.emulator.checks.operand_contents import SENTENCES
    from fragir.emulator.checks.schedules.generations import RULES

    known = meanings()
    if name in VERDICTS:  # one of which is a kind, too
        one = VERDICTS[name]
        more = known[name].document() if name in known else {}
        found = {"name": name, "means": one.means, "exit_code": one.exit_code, "then": one.then}
        return {**more, **found}
    if name in known:
        return known[name].document()
    if name in RULES:
        rule = FindingMeaning(name, RULES[name], *_ROWS["schedule"])
        return {**rule.document(), "kind": "schedule"}
    if name in SEVERITIES:
        return {"name": name, "means": SEVERITIES[name]}
    for key, (title, sentence) in SENTENCES.items():
        if name in (key, title):
            return {"name": key, "means": sentence, "section": title, "severity": "letter"}
    return None


def names() -> list[str]:
    """Every name that `explain` knows, but for sentences of the ISA."""
    from fragir.emulator.checks.schedules.generations import RULES

    return list(dict.fromkeys([*VERDICTS, *meanings(), *RULES, *SEVERITIES]))


def _unknown(name: str) -> FragirError:
    import difflib

    near = difflib.get_close_matches(name, names(), n=3)
    hint = f"near it: {', '.join(near)}" if near else f"known are: {', '.join(names())}"
    return FragirError(f"there is no finding {name[:80]!r}", hint=hint)
