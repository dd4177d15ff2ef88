"""What a word of the command line may become: mnemonics, operands, targets, passes, files.

A parameter's name, its metavar or the file endings in its metavar say which words it takes
(`RULES`), so a new command completes what the others do. Everything is imported when a shell asks;
what cannot be read gives no words and no error. `fragir.cli.shells` is the other half.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, str], Iterable[tuple[str, str]]]
"""(context, the word so far) -> (word, what it is). A word that is not over ends in `MORE`."""

MORE = "\0"
"""Behind a word that goes on: the shell puts no blank there."""
MANY = 40
"""As many mnemonics are listed as a whole; of more the next part is."""


class CompletedWord(click.types.StringParamType):
    """Text that a shell can complete."""

    def __init__(self, completer: Completer) -> None:
        self.completer = completer

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items: list[CompletionItem] = []
        for value, about in self.completer(ctx, incomplete):
            if value.startswith(incomplete):
                kind = "partial" if value.endswith(MORE) else "plain"
                items.append(CompletionItem(value.removesuffix(MORE), kind, about or None))
        return items


def attach(parameters: Iterable[click.Parameter]) -> None:
    """Gives text parameters the words that `RULES` know for them."""
    for parameter in parameters:
        metavar = parameter.metavar or ""
        found = RULES.get(parameter.name or "") or RULES.get(metavar)
        if found is None and (endings := re.findall(r"\.[a-z]\w*", metavar)):
            found = files(*endings)
        if found is not None and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = CompletedWord(found)


# Instructions and layouts ------------------------------------------------------------------------


def mnemonics(_context: click.Context | None, begun: str) -> Iterator[tuple[str, str]]:
    """Instructions that begin so; of many the next part of their names."""
    from fragir import isa

    found = {each.mnemonic for each in isa.instructions() if each.mnemonic.startswith(begun)}
    if len(found) <= MANY:
        yield from ((name, "") for name in sorted(found))
        return
    first, last = min(found), max(found)
    common = next(i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    for name in sorted({_part(name, common) for name in found}):
        yield name, ""


def _part(mnemonic: str, at: int) -> str:
    """A mnemonic up to the first dot behind `at`; whole where there is none."""
    dot = mnemonic.find(".", at)
    return mnemonic if dot < 0 else mnemonic[: dot + 1] + MORE


def operands(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """The operands of the instruction that stands before."""
    name = context.params.get("subject") or context.params.get("mnemonic")
    yield from _operands(str(name), "") if name else ()


def _operands(mnemonic: str, before: str) -> Iterator[tuple[str, str]]:
    from fragir import isa

    try:
        found = isa.lookup(mnemonic)
    except isa.UnknownInstruction:
        return
    for name, operand in found.operands.items():
        shape = " x ".join(map(str, operand.shape))
        yield f"{before}{name}", f"{operand.element or operand.registers.type}, {shape}"


def layouts(context: click.Context | None, begun: str) -> Iterator[tuple[str, str]]:
    """How a layout's text may begin; MNEMONIC:OPERAND to its end."""
    for prefix, about in NOTATIONS.items():
        yield prefix + MORE, about
    head, colon, _ = begun.rpartition(":")
    if colon and "." in head:
        yield from _operands(head, f"{head}:")
    for name, about in mnemonics(context, begun):
        yield (name if name.endswith(MORE) else f"{name}:{MORE}"), about


def subjects(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """MNEMONIC or a layout's text."""
    seen: set[str] = set()
    for name, about in (*mnemonics(context, begun), *layouts(context, begun)):
        word = name.removesuffix(MORE)
        if word.removesuffix(":") not in seen:
            yield name, about
        seen.add(word)


NOTATIONS = {
    "cute:": "CuTe, SHAPE:STRIDE",
    "f2:": "bases over F2",
    "formula:": "formulas of the PTX ISA",
    "ttg:#ttg.": "Triton's encoding",
    "#frag.": "an attribute of the IR",
    "lane [": "digits of axes",
}


def types(_context: click.Context, _begun: str) -> Iterator[tuple[str, str]]:
    """Element types."""
    from fragir.isa.model import BITS

    yield from ((name, f"{bits} bits") for name, bits in BITS.items() if "." not in name)


def targets(_context: click.Context, _begun: str) -> Iterator[tuple[str, str]]:
    """GPU targets."""
    from fragir.isa.targets import TARGETS

    yield from ((name, f"PTX {version} and newer") for name, version in TARGETS.items())


# Passes, sweeps, functions -----------------------------------------------------------------------


def passes(_context: click.Context | None, begun: str) -> Iterator[tuple[str, str]]:
    """Passes behind the last comma that is in no braces; fragir's come first."""
    from fragir.plugins import own_passes
    from fragir.universe import PASSES

    before = re.match(r"(?:[^,{]*(?:\{[^}]*\})?,)*", begun)
    done = before[0] if before else ""
    if "{" in begun[len(done) :]:
        return
    for name in (*sorted(PASSES), *sorted(own_passes().keys() - PASSES.keys())):
        yield f"{done}{name}{MORE}", ""


def outputs(_context: click.Context | None, _begun: str) -> Iterator[tuple[str, str]]:
    """What `fragir-opt -t` writes."""
    from fragir.plugins import own_targets

    yield from ((name, "") for name in sorted(own_targets()))


def sweeps(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Sweeps by name, or Python files."""
    from fragir.sweeps import catalogue

    for name in catalogue.names():
        yield name, catalogue.about(catalogue.find(name))
    yield from files(".py")(context, begun)


def functions(context: click.Context, _begun: str) -> Iterator[tuple[str, str]]:
    """The functions of the file that stands before."""
    given = [*(context.params.get(name) for name in FILES), *context.args]
    path = next((word for word in given if word), None)
    if path is None:
        return
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return
    yield from ((name, "") for name in dict.fromkeys(_FUNCTION.findall(text)))


FILES = ("program", "ptx", "file")
"""What commands call the file that has functions."""
_FUNCTION = re.compile(r"^[^/\n]*(?:\bfunc\.func\b[^@\n]*@|\.entry\s+)([\w$.]+)", re.MULTILINE)


# Files -------------------------------------------------------------------------------------------


def files(*endings: str) -> Completer:
    """Files that end so, and folders on the way to them; any file where no ending is named."""

    def found(_context: click.Context | None, begun: str) -> Iterator[tuple[str, str]]:
        yield from _files(begun, "", endings)

    return found


def _files(begun: str, before: str, endings: Sequence[str]) -> Iterator[tuple[str, str]]:
    folder, name = os.path.split(begun)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") and not name.startswith("."):
            continue
        path = f"{before}{os.path.join(folder, entry.name)}"
        if entry.is_dir():
            yield f"{path}/{MORE}", ""
        elif not endings or entry.name.endswith(tuple(endings)):
            yield path, ""


def arrays(_context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """KIND:VALUE, or NAME=VALUE, whose value may be an array's file."""
    head = re.match(r"(?:[\w$.-]+=)?(?:(?:in|out|inout|ptr|tma|tma-pointer|pointers):)?", begun)
    before = head[0] if head else ""
    if before:
        yield from _files(begun[len(before) :], before, (".npy",))


def arguments(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """The kinds of `--arg`, then files."""
    if ":" not in begun:
        from fragir.cli.argument_kinds import COMPOUND, KINDS

        for kind in (*KINDS, *COMPOUND):
            yield f"{kind}:{MORE}", ""
        yield "null", "a null pointer"
    yield from arrays(context, begun)


RULES: dict[str, Completer] = {
    # by the parameter's name
    "entry": functions,
    "operand": operands,
    "mnemonic": mnemonics,
    "only": mnemonics,
    "name": sweeps,  # of `fragir sweep`
    # by its metavar
    "SM": targets,
    "MNEMONIC|TEXT": subjects,
    "TEXT": layouts,
    "LAYOUT": layouts,
    "T": types,
    "TYPE": types,
    "PASS,...": passes,
    "KIND:VALUE": arguments,
    "NAME=VALUE": arrays,
    "NAME=ANSWER": arrays,
    "NAME=MODE:FILE.npy": arrays,
    "FILE": files(),
}
