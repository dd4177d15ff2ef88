"""Malformed and hostile texts: PtxSyntaxError and nothing else, in bounded time."""

from __future__ import annotations

import random
import time

import pytest

from fragir.ptx import PtxSyntaxError, parse

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BODY = HEAD + ".entry k()\n{\n"
N = 200_000

REFUSED = {
    "nul": "\0" * N + ";",
    "letters": "a" * N,
    "letters in a body": BODY + "a" * N,
    "spaces in a body": BODY + " " * N,
    "newlines in a body": BODY + "\n" * N,
    "no semicolon": BODY + "a b, " * N,
    "operands": BODY + "a " + "b," * N + "c;",
    "digits": BODY + "mov a, " + "1" * N + ";",
    "short digits": BODY + "mov a, " + "1" * 5000 + ";",
    "open comments": BODY + "/*" * N,
    "line comment": BODY + "//" * N,
    "quotes": BODY + '"' * (N + 1),
    "quotes on lines": '"\n' * N,
    "open blocks": BODY + "{" * N,
    "closed blocks": BODY + "}" * N,
    "brackets": BODY + "mov a, " + "[" * N + ";",
    "parens": BODY + "mov a, " + "(" * 9999 + "1" + ")" * 9999 + ";ret;}",
    "vectors": BODY + "mov a, " + "{" * 9999 + "}" * 9999 + ";ret;}",
    "signs": BODY + "mov a, " + "-" * 9999 + "1;ret;}",
    "sums": BODY + "mov a, 1" + "+1" * 9999 + ";ret;}",
    "conditions": BODY + "mov a, " + "1?" * 3000 + "1" + ":1" * 3000 + ";ret;}",
    "dots": BODY + "a" + ".b" * N,
    "guards": BODY + "@" * N,
    "labels": BODY + "a:" * 20_000,
    "section": ".section .x {" + "a" * N,
    "section of slashes": ".section .x {" + "/" * N,
    "linkage": ".visible " * 20_000,
    "entries": HEAD + ".entry " * N,
    "pragmas": HEAD + ".entry k " + '.pragma "a";' * 10_000,
    "version": ".version " + "9" * N + ".1",
    "locations": BODY + ".loc " * N,
    "targets": ".target " + "a," * N,
    "surrogate": BODY + "mov \ud800;",
    "100 MB": "x" * 100_000_000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    start = time.process_time()
    with pytest.raises(PtxSyntaxError):
        parse(REFUSED[name])
    assert time.process_time() - start < 10  # some take 0.1 s; quadratic ones would take minutes


def test_every_truncation(texts: dict[str, str]) -> None:
    text = texts["features"]
    accepted = 0
    for end in range(0, len(text), 37):
        try:
            parse(text[:end])
            accepted += 1
        except PtxSyntaxError:
            pass
    assert accepted < len(text) / 37 / 2


def test_bytes_at_random() -> None:
    rng = random.Random(5)
    for _ in range(300):
        noise = rng.randbytes(rng.randint(1, 200)).decode("latin-1")
        with pytest.raises(PtxSyntaxError):
            parse(BODY + noise)


def test_blocks_within_the_limit() -> None:
    text = BODY + "{" * 60 + "}" * 60 + "}"
    assert parse(text) == parse(text, cache=False)
    for cache in (True, False):
        with pytest.raises(PtxSyntaxError, match="blocks nested deeper"):
            parse(BODY + "{" * 65 + "}" * 65 + "}", cache=cache)
