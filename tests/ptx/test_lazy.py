"""Bodies that are read when they are looked at: the trees and the errors of reading all at once."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import pytest

from fragir.ptx import PtxSyntaxError, parse, write
from fragir.ptx.reader import characters_read
from fragir.ptx.tree import Block, Module, UnreadBlock
from fragir.ptx.visit import transform, walk

FILES = sorted(Path(__file__).parent.glob("data/*.ptx"))
HEAD = ".version 8.4\n.target sm_80\n.address_size 64\n"
TWO = f"""{HEAD}
.func f () {{ // a brace in a comment: }}
  .pragma "and }} in a string";
  {{ .reg .b32 %a; mov.b64 {{%a, _}}, %b; }} /* {{{{ */
  ret;
}} // f
.entry k () {{ ret; }}
"""


def read(text: str, lazy: bool) -> Module | tuple[str, int | None, int | None]:
    """The tree, all of it; or what is wrong and where."""
    try:
        module = parse(text, lazy=lazy)
        for _ in walk(module):
            pass
    except PtxSyntaxError as error:
        return error.message.partition(", expected")[0], error.line, error.col
    return module


def places(module: Module) -> list[int]:
    return [node.at for node in walk(module) if not isinstance(node, Module)]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_the_trees_are_the_same(file: Path) -> None:
    text = file.read_text("utf-8")
    module = parse(text)
    assert parse(text, lazy=True) == module == parse(text, lazy=True)
    assert write(parse(text, lazy=True)) == write(module)
    assert places(parse(text, lazy=True)) == places(module)


def test_a_body_is_read_when_it_is_looked_at() -> None:
    module = parse(TWO, lazy=True)
    f, k = module.functions
    assert f.body is not None
    assert type(f.body) is UnreadBlock
    assert characters_read(module) == 0
    assert module.entries == {"k": k}
    assert characters_read(module) == 0
    assert len(f.body.items) == 5
    assert type(f.body) is Block  # type: ignore[comparison-overlap]
    assert characters_read(module) == f.body.end - f.body.at
    assert repr(k.body) == "<block of 7 characters>"


def test_copies_are_read() -> None:
    module = parse(TWO)
    assert copy.deepcopy(parse(TWO, lazy=True)) == module
    assert pickle.loads(pickle.dumps(parse(TWO, lazy=True))) == module
    assert hash(parse(TWO, lazy=True)) == hash(module)
    assert transform(parse(TWO, lazy=True), lambda node: node) == module


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ret;\n}", "ret 5 6;\n}"),  # in the first body
        ("{ ret; }", "{ ret; ]; }"),  # in the second
        (".address_size 64", ".address_size"),  # in front of them
        ('string";', "string;"),  # a quote without its end
        ("ret; }\n", "ret;\n"),  # no end of the text
        ("  {", "  { {"),
        ("{ ret; }", "{ " * 70 + "ret; " + "} " * 70),  # too deep
    ],
)
def test_errors_are_the_same(old: str, new: str) -> None:
    assert TWO.count(old) == 1
    text = TWO.replace(old, new)
    whole = read(text, lazy=False)
    assert isinstance(whole, tuple)
    assert read(text, lazy=True) == whole


def test_an_error_is_raised_each_time() -> None:
    module = parse(f"{HEAD}.entry k () {{ ret 5 6; }}", lazy=True)
    body = module.entries["k"].body
    assert body is not None
    for _ in range(2):
        with pytest.raises(PtxSyntaxError, match="unexpected '6'"):
            len(body.items)


def test_mutants_are_the_same() -> None:
    """One character deleted, doubled or put in: the same tree, or an error at the same place."""
    rng = random.Random(7)
    texts = [TWO, *(f.read_text("utf-8") for f in FILES if f.stat().st_size < 4000)]
    refused = 0
    for _ in range(100):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        put = rng.choice(["", text[at] * 2, *'{}();"/*\n#'])
        mutant = text[:at] + put + text[at + 1 :]
        whole = read(mutant, lazy=False)
        assert read(mutant, lazy=True) == whole, (at, put)
        refused += isinstance(whole, tuple)
    assert 20 < refused < 95
