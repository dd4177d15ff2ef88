"""ptxas, NVIDIA's assembler: PTX text in; a cubin, resource counts and warnings out."""

from __future__ import annotations

import functools
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fragir.errors import FragirError, short_text
from fragir.ptx.cutter import strip_comments
from fragir.ptx.machines import declared_limits
from fragir.ptx.rules import Refused
from fragir.toolchain import cubins
from fragir.toolchain.find import PTXAS, Tool, every, execute, find
from fragir.toolchain.verdicts import EntryInfo as EntryInfo
from fragir.toolchain.verdicts import ScheduleVerdict, verdict_of, verdicts

_ONLY_PTXAS_12 = ("sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72")
"""Targets that ptxas 12.9 assembles for and ptxas 13 does not."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A cubin, what each of its entries takes, and the warnings of the assembler."""

    cubin: bytes
    entries: dict[str, EntryInfo]
    warnings: list[tuple[str, str]]
    """Pairs (code, message); the code is as in `C7510`, empty where ptxas gives none."""

    def __repr__(self) -> str:
        taken = ", ".join(f"{name} {one.registers} registers" for name, one in self.entries.items())
        return short_text(
            f"<cubin of {len(self.cubin)} bytes: {taken}; {len(self.warnings)} warnings>"
        )

    @property
    def verdicts(self) -> list[ScheduleVerdict]:
        """What ptxas did to the schedules: products made serial, waits put in, spills."""
        return verdicts(self.warnings, self.entries)

    @property
    def other_warnings(self) -> list[tuple[str, str]]:
        """The warnings that no verdict tells."""
        return [one for one in self.warnings if verdict_of(*one) is None]


def assemble(
    ptx: str,
    target: str,
    *,
    version: str | None = None,
    filename: str = "<ptx>",
    cache: bool = True,
) -> Assembled:
    """Assembles PTX for `target` (`sm_90a`).

    `version` chooses another ptxas than the first one found (`12.9`). `filename` is what errors
    call the text. Unless `cache` is off, the result is taken from the cache of `cubins`, and unless
    a version is asked for, from the cubins that FRAGIR_CUBINS has.

    A target of a user's own that no ptxas knows is assembled as the one it says (`assembled_as`),
    which then stands in the text too.

    Raises FragirError where ptxas is missing or refuses the text; with the line that it names.
    """
    made = cubins.carried_cubin(target, ptx) if version is None else None
    cubin, log = made or _cubin_and_log(ptx, target, version, filename, cache)
    return Assembled(cubin, _entries(log), _warnings(log))


def carry(folder: Path, ptx: str, target: str) -> Assembled:
    """Assembles PTX and adds the cubin to a folder that FRAGIR_CUBINS may name elsewhere."""
    cubin, log = _cubin_and_log(ptx, target, None, "<ptx>", cache=True)
    log = _SECONDS.sub("", log)  # the same PTX makes the same entry
    cubins.carry(folder, target, ptx, cubin, log)
    return Assembled(cubin, _entries(log), _warnings(log))


def _cubin_and_log(
    ptx: str, target: str, version: str | None, filename: str, cache: bool
) -> tuple[bytes, str]:
    """The cubin and what ptxas printed, from the cache where it is there."""
    tool, known = _choose(target, version)
    ptx, target = _naming(ptx, target, known), known
    key = cubins.key("ptxas", tool.version, target, ptx)
    kept = cubins.load(key) if cache else None
    if kept is None:
        kept = _run(tool, ptx, target, filename)
        if cache:
            cubins.store(key, *kept)
    return kept


def target_for(target: str, gpu: str) -> str:
    """What PTX for `target` is assembled for to run on a GPU that calls itself `gpu` (`sm_90`).

    Its own target where that is this GPU's, with features of its own or not; PTX for an older one
    is assembled for the GPU, since machine code runs on no other generation than its own (CUDA
    driver API, "Binary compatibility").
    """
    return target if target.rstrip("af") == gpu else gpu


def own_target(ptx: str, filename: str) -> str:
    """The target that PTX is for by its own words. FragirError where it names none."""
    try:
        bare, _ = strip_comments(ptx)
    except Refused:  # a comment without an end; ptxas says so
        bare = ptx
    named = re.search(r"(?m)^[^\S\n]*\.target\s+(\w+)", bare)
    if named is None:
        hint = "is it PTX? --target says for which machine"
        raise FragirError("this PTX has no .target", filename, hint=hint)
    return named[1]


def targets(version: str | None = None) -> tuple[str, ...]:
    """The `sm_` targets that this ptxas assembles for."""
    return _targets(find(PTXAS, version).path)


@functools.cache
def _targets(path: Path) -> tuple[str, ...]:
    text = execute([str(path), "--help"]).stdout
    start = text.find("--gpu-name")
    end = text.find("\n\n", start)
    return tuple(dict.fromkeys(re.findall(r"'(sm_\w+)'", text[start:end])))


def _choose(target: str, version: str | None) -> tuple[Tool, str]:
    """The ptxas of that version, else the first that knows the target, and what that calls it.

    So `sm_70` finds ptxas 12 where it is installed beside 13, which has dropped it.
    """
    first = find(PTXAS, version)
    other = declared_limits(target)
    for name in (target, other.assembled_as) if other is not None else (target,):
        for tool in [first] if version else [first, *every(PTXAS)]:
            if name in _targets(tool.path):
                return tool, name
    import difflib

    known = _targets(first.path)
    near = difflib.get_close_matches(target, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    if other is not None:
        hint = "say with `assembled_as` which of NVIDIA's targets it is to be assembled as"
    if target in _ONLY_PTXAS_12:
        hint = "ptxas 12 does: `pip install 'fragir[ptxas12]'`"
    raise FragirError(f"ptxas {first.version} knows no target `{target}`", hint=hint)


def with_lines(ptx: str, target: str, *, version: str | None = None) -> bytes:
    """The cubin, the same code as of `assemble`, in which every instruction says its PTX line."""
    tool, known = _choose(target, version)
    return _run(tool, _naming(ptx, target, known), known, "<ptx>", "-lineinfo")[0]


def _naming(ptx: str, target: str, known: str) -> str:
    """PTX for `target` that names it as ptxas knows it."""
    if known == target:
        return ptx
    return re.sub(rf"(?m)^(\s*\.target\s+){target}\b", rf"\g<1>{known}", ptx, count=1)


def _run(tool: Tool, ptx: str, target: str, filename: str, *options: str) -> tuple[bytes, str]:
    """The cubin and what ptxas printed."""
    with tempfile.TemporaryDirectory(prefix="fragir-") as folder:
        source, out = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(ptx.encode("utf-8", "surrogateescape"))
        arguments = ["-v", f"-arch={target}", *options, source.name, "-o", out.name]
        command = [str(tool.path), *arguments]
        done = execute(command, cwd=Path(folder))
        log = done.stdout + done.stderr
        if done.returncode != 0 or not out.is_file():
            raise _refusal(log, ptx, target, filename, done.returncode)
        return out.read_bytes(), log


# What ptxas prints -----------------------------------------------------------------------------

_SECONDS = re.compile(r"^ptxas info\s*: Compile time = .*\n", re.MULTILINE)
_ERROR = re.compile(r"^ptxas (?:.*?, line (\d+); )?\s*(?:error|fatal)\s*: (.*)$", re.MULTILINE)
_WARNING = re.compile(
    r"^ptxas (?:(?:.*?, line (\d+); )?\s*warning\s*: (?:\((C\d+)\) )?|info\s*: \((C\d+)\) )(.*)$",
    re.MULTILINE,
)
_CLEARER = {
    "near '': syntax error": "at the end of the text: it is cut off",
    "SM version specified by .target is higher than default SM version assumed": (
        "its .target is a newer GPU"
    ),
}
_COMPILING = re.compile(r"Compiling entry function '([^']+)' for")
_PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)'?")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")


def _signal_name(number: int) -> str:
    """`SIGSEGV`."""
    import signal  # seldom needed

    known = {one.value: one.name for one in signal.Signals}
    return known.get(number, f"signal {number}")


def _refusal(log: str, ptx: str, target: str, filename: str, code: int) -> FragirError:
    """The first of ptxas's errors, with the PTX line that it names."""
    errors = [(line, text) for line, text in _ERROR.findall(log) if "aborted due to" not in text]
    if not errors and code < 0:
        return FragirError(
            f"ptxas crashed ({_signal_name(-code)})",
            hint="a fault of ptxas's: --entry NAME compiles one function; another version may do",
            file=filename,
        )
    if not errors:
        last = (log.strip().splitlines() or [f"exit status {code}"])[-1]
        return FragirError(f"ptxas failed: {last}", file=filename)
    place, text = errors[0]
    for other in errors:
        # "Unknown symbol" says more than the "Illegal operand" that follows from it
        if other[0] == place and other[1].startswith("Unknown"):
            text = other[1]
            break
    if not place and (named := re.search(r"on line (\d+)$", text)):
        place = named[1]
    if not place and ".target" in text:
        lines = ptx.splitlines()
        place = next((str(n) for n, line in enumerate(lines, 1) if ".target" in line), "")
    for said, meant in _CLEARER.items():
        text = text.replace(said, meant)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"ptxas refuses this for {target}: {text.replace('kernel.ptx', filename)}{more}"
    if not place:
        return FragirError(message, file=filename)
    line = int(place)
    lines = ptx.split("\n")
    source = (lines[line - 1].rstrip("\r") or None) if line <= len(lines) else None
    return FragirError(message, filename, line, _column(text, source), source)


def _column(message: str, source: str | None) -> int | None:
    """The column of the word that the message quotes, if the line has it exactly once."""
    quoted = re.search(r"'([^']+)'", message)
    if source is None or quoted is None:
        return None
    found = [m.start() for m in re.finditer(re.escape(quoted[1]) + r"(?!\w)", source)]
    return found[0] + 1 if len(found) == 1 else None


def _warnings(log: str) -> list[tuple[str, str]]:
    """Warnings, and the notes that carry a code: those say what ptxas serialised or added."""
    found: list[tuple[str, str]] = []
    for line, code, note, text in _WARNING.findall(log):
        where = f"line {line}: " if line else ""
        found.append((code or note, where + text.strip()))
    return found


def _entries(log: str) -> dict[str, EntryInfo]:
    """What `-v` says of every entry function, in the order of the log.

    A block is `Compiling entry function`, `Function properties for`, the stack line and the line
    of registers; functions that are no entries have properties only.
    """
    properties: dict[str, tuple[int, int, int]] = {}
    entries: dict[str, EntryInfo] = {}
    used: dict[str, str] = {}
    entry = function = None
    for line in log.splitlines():
        if match := _COMPILING.search(line):
            entry = match[1]
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif function is not None and (match := _STACK.search(line)):
            properties[function] = int(match[1]), int(match[2]), int(match[3])
        elif entry is not None and _REGISTERS.search(line):
            used[entry] = line
    for name, line in used.items():
        stack, stores, loads = properties.get(name, (0, 0, 0))
        entries[name] = EntryInfo(
            registers=_number(_REGISTERS, line),
            spill_stores=stores,
            spill_loads=loads,
            shared=_number(_SHARED, line),
            stack=stack,
            barriers=_number(_BARRIERS, line),
        )
    return entries


def _number(pattern: re.Pattern[str], line: str) -> int:
    """The number that the pattern finds in the line; ptxas leaves out what is 0."""
    match = pattern.search(line)
    return int(match[1]) if match else 0
