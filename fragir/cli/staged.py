"""The hook for pre-commit: `python -m fragir.cli.staged FILE...`, files of PTX or MLIR.

A file says in comments how it is checked, as the examples do:

    //     fragir check exchange.ptx --block 64
    //     fragir judge norm.ptx --case cases.py:norms

Each such line of `check`, `compile`, `judge` or `run` that names the file and writes none is
executed, from the folder that git works in. A file without one is read: PTX by ptxas too, where
there is one, MLIR with its operations verified.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Commands that a file may ask for.
CHECKS = ("check", "compile", "judge", "run")
#: Words by which a command would write a file.
WRITES = frozenset((">", ">>", "|", "-o", "--output", "--sarif", "--batch"))
_LINE = re.compile(r"^\s*//\s*(?:\$ )?fragir (.*)$", re.MULTILINE)


def own_checks(path: str, text: str) -> Iterator[list[str]]:
    """The words behind `fragir` of a file's own checks."""
    for match in _LINE.finditer(text):
        try:
            words = shlex.split(match[1])
        except ValueError:
            continue  # prose with an apostrophe
        if words and words[0] in CHECKS and _names(path, words) and not WRITES & {*words}:
            yield words


def _names(path: str, words: Sequence[str]) -> bool:
    """Whether one of the words is this file."""
    return any(
        Path(word).name == Path(path).name and Path(word).exists() and Path(word).samefile(path)
        for word in words[1:]
        if not word.startswith("-") and word.endswith((".ptx", ".mlir"))
    )


def problems(path: str) -> list[str]:
    """What is wrong with a file, in lines; none where nothing is."""
    from fragir.cli import main, opt

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [f"{path}: cannot be read: {error}"]
    wrong: list[str] = []
    for words in own_checks(path, text):
        code, said = _printed(main.main, words)
        if code:
            wrong += [f"$ fragir {shlex.join(words)}", *said]
            break
    else:
        if path.endswith(".ptx"):
            wrong += _read(text, path)
        else:
            code, said = _printed(opt.main, [path])
            wrong += said if code else []
    return wrong


def _printed(
    command: Callable[[Sequence[str]], int], words: Sequence[str]
) -> tuple[int, list[str]]:
    """Its exit code, and what it has printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = command(words)
    return code, out.getvalue().splitlines()


def _read(text: str, path: str) -> list[str]:
    """What is wrong with PTX before it runs."""
    from fragir.errors import FragirError
    from fragir.ptx import parse
    from fragir.toolchain.find import PTXAS, find
    from fragir.toolchain.ptxas import assemble, own_target

    try:
        parse(text, path)
        try:
            find(PTXAS)
        except FragirError:
            return []
        assemble(text, own_target(text, path), filename=path)
    except FragirError as error:
        return f"error: {error}".splitlines()
    return []


def main(paths: Sequence[str]) -> int:
    """1 where something is wrong with a file."""
    found = [line for path in paths for line in problems(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
