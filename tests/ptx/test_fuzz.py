"""Mutations of real files, many at once: a tree or a clear error, no traceback, no hang, no bloat.

FRAGIR_PTX_FUZZ=100000 python -m pytest tests/ptx/test_fuzz.py -k mutations -s    (some minutes)
"""

from __future__ import annotations

import os
import random
import resource
import time

from fragir.ptx import PtxSyntaxError, parse

JUNK = (
    *(
        "\0",
        "\x1b",
        "\xa0",
        "é",
        "\U0001f600",
        "\ud800",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ";",
        ",",
        '"',
    ),
    *("/*", "*/", "//", "#", "@", "@@DWARF ", "!", "|", "+-", "<<", "?", ":", ".", "..", "::", "%"),
    *("$", "_", "\r", "0x", "0f3F8", "0d", "1e", "099", "0b2", "1" * 40, "a" * 300, "{" * 80),
    *("(" * 80, "-" * 80, " " * 500, ".reg .b32 ", ".loc 1 ", ".section .x {", "bra ", "call ("),
    *(".entry k(", '.pragma "', "WARP_SZ", "generic("),
)


def mutated(rng: random.Random, text: str) -> str:
    """One to six edits: runs changed, dropped, doubled, moved; bits flipped; junk; cut off."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 2, 5, 30, 200)))
        way = rng.randrange(7)
        if way == 0:
            text = text[:at] + rng.choice(JUNK) + text[end:]
        elif way == 1:
            text = text[:at] + text[end:]
        elif way == 2:
            text = text[:at] + text[at:end] * rng.choice((2, 2, 3, 50)) + text[end:]
        elif way == 3:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + end - at] + text[end:]
        elif way == 4:
            text = text[:at] + chr(rng.randrange(256)) + text[at + 1 :]
        elif way == 5 and at < len(text):
            text = text[:at] + chr(ord(text[at]) ^ 1 << rng.randrange(7)) + text[at + 1 :]
        elif way == 6 and rng.random() < 0.1:
            text = text[:at]
    return text


def check(text: str) -> bool:
    """Whether the text was read; else its error must say all that an error has to."""
    start = time.process_time()
    try:
        parse(text, "fuzz.ptx")
        error = None
    except PtxSyntaxError as caught:
        error = caught
    assert time.process_time() - start < 5
    if error is not None:
        first, *shown = str(error).split("\n")
        assert error.line is not None
        assert 1 <= error.line <= text.count("\n") + 1
        assert first.startswith(f"fuzz.ptx:{error.line}:{error.col}: "), first
        assert len(first) < 2000, first
        assert len(shown) == 2, str(error)
        assert shown[1].strip() == "^", shown
    return error is None


def test_mutations(texts: dict[str, str]) -> None:
    count = int(os.environ.get("FRAGIR_PTX_FUZZ", "2000"))
    rng = random.Random(int(os.environ.get("FRAGIR_PTX_SEED", "1")))
    lines = [text.splitlines(keepends=True) for text in texts.values()]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read, longest = 0, 0.0
    for _ in range(count):
        file = rng.choice(lines)
        first = rng.randrange(len(file))
        body = "".join(file[first : first + rng.randint(1, 12)])
        text = "".join(file) if rng.random() < 0.02 else body
        if rng.random() < 0.7 and text is body:
            text = f".version 8.7\n.target sm_90a\n.entry k()\n{{\n{body}}}\n"
        start = time.process_time()
        read += check(mutated(rng, text))
        longest = max(longest, time.process_time() - start)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{count} mutations, {read} read, longest {longest:.2f} s, memory grew {grown:.0f} MiB")
    assert count // 50 < read < count * 9 // 10  # the test tests both
    assert grown < 300


def test_truncated_everywhere(texts: dict[str, str]) -> None:
    for text in texts.values():
        for end in range(0, len(text), max(1, len(text) // 60)):
            check(text[:end])
