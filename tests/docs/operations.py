"""What is written of operations by their rows, docstrings and golden programs.

python -m tests.docs.operations        writes it anew

The reference of operations on tiles, docs/operations.md; the whole IR on a page, docs/ir.md; the
stubs that type checkers read in place of `dialects/frag` and `dialects/ptx`; their lists in
docs/api.md.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef

from fragir.builder.kernel import KernelBuilder
from fragir.builder.values import Tile
from fragir.dialects import catalogue
from fragir.dialects.frag import Frag
from fragir.dialects.ptx import Ptx
from fragir.late_dialect import LateDialect, Row

ROOT = Path(__file__).resolve().parents[2]
PAGE, GOLDEN = ROOT / "docs" / "operations.md", ROOT / "tests" / "golden"
ON_A_PAGE, NAMES = ROOT / "docs" / "ir.md", ROOT / "docs" / "api.md"
DIALECTS: tuple[tuple[LateDialect, Mapping[str, str]], ...] = (
    (Frag, catalogue.FRAG_NAMES),
    (Ptx, catalogue.PTX_NAMES),
)
HEAD = """\
# Reference of operations on tiles

Written by `python -m tests.docs.operations` from the documentation strings of the classes in
`dialects/frag` and of the builder; the examples are those that `tests/golden` parses and prints.
[frag.md](frag.md) has types, words and what belongs together, [python.md](python.md) shows how
kernels are written in Python.
"""


def page() -> str:
    """The whole text."""
    operations = sorted(Frag.operations, key=lambda cls: cls.name)
    parts = [HEAD, "## Operations\n"]
    parts += [_operation(cls) for cls in operations if issubclass(cls, IRDLOperation)]
    parts += ["## Methods of tiles\n", *_methods(Tile, "tile")]
    parts += ["## Methods of a kernel\n", *_methods(KernelBuilder, "k")]
    return "\n".join(parts)


def _operation(cls: type[IRDLOperation]) -> str:
    """A heading, what the class says, its parts, an example."""
    definition = cls.get_irdl_definition()
    rows = [
        ("operands", _names(definition.operands)),
        ("words and numbers", _names([*definition.properties.items()])),
        ("regions", _names(definition.regions)),
        ("results", _names(definition.results)),
    ]
    lines = [f"### `{cls.name}`\n", inspect.cleandoc(cls.__doc__ or "")]
    named = [f"- {what}: {names}" for what, names in rows if names]
    lines += ["", *named] if named else []
    shown = example(cls.name)
    if shown:
        lines += ["", *(f"    {line}" for line in shown)]
    return "\n".join(lines) + "\n"


def _names(parts: Any) -> str:
    """The names of parts; those that may be absent, or several, say so."""
    found: list[str] = []
    for name, part in parts:
        if name == "operandSegmentSizes":
            continue
        many = isinstance(part, VariadicDef) and not isinstance(part, OptionalDef)
        end = " (several)" if many else " (optional)" if isinstance(part, OptionalDef) else ""
        found.append(f"`{name}`{end}")
    return ", ".join(found)


def example(name: str) -> list[str]:
    """The operation where a golden program has it first, with its regions; nothing without one."""
    path = GOLDEN / f"{name.replace('.', '_')}.mlir"
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(rf"{name}\b(?!\")", line)), None)
    if first is None:
        return []
    end, depth = first, 0
    while True:
        depth += lines[end].count("{") - lines[end].count("}")
        follows = end + 1 < len(lines) and lines[end + 1].lstrip().startswith((":", "->"))
        if depth <= 0 and not follows and not lines[end].rstrip().endswith(("to", ",", ":")):
            break
        end += 1
    indent = len(lines[first]) - len(lines[first].lstrip())
    return [line[indent:] for line in lines[first : end + 1]]


def _methods(cls: type[object], name: str) -> Iterator[str]:
    """Public methods, those of base classes too, in alphabetical order."""
    for method in sorted(dir(cls)):
        function = inspect.getattr_static(cls, method)
        if method.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        signature = inspect.signature(function)
        shown = [str(p) for p in _shown(signature)]
        text = inspect.cleandoc(function.__doc__)
        yield f"### `{name}.{method}({', '.join(shown)})`\n\n{text}\n"


def _shown(signature: inspect.Signature) -> Iterator[inspect.Parameter | str]:
    """Parameters as a user writes them: without `self` and without types."""
    starred = False
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred |= parameter.kind is parameter.VAR_POSITIONAL
        default = parameter.default
        if default is not parameter.empty:
            yield f"{parameter.name}={default!r}"
        else:
            yield str(parameter.replace(annotation=parameter.empty))


IR = """\
# The IR on a page

Written by `python -m tests.docs.operations` from the rows of `dialects/catalogue.py`. A line is an
operation: its operands, words and numbers in braces, regions in brackets, results; `?` is one that
may be absent, `*` any number. Numbers among indices, `%a[0, %i]`, are left out. Behind it stand the
methods that make it in Python, of a kernel `k`, a tile `t`, a ring, its slot, a tile in flight, a
lane. What each does is said by [operations](operations.md), [frag](frag.md) and [ptx](ptx.md).

## Operations on tiles

```text
{frag}
```

Types and attributes:

```text
{frag_attributes}
```

## Operations of a lane

```text
{ptx}
```

Types and attributes:

```text
{ptx_attributes}
```

## Of other dialects

What lanes do for them (`lanes`), how they are written as PTX (`ptx`), and what they mean in the
reference (`meaning`), also in regions of `frag.lanes` (`in lanes`). Besides, every operation of
`arith` and `math` is taken over to lanes and has a meaning; structured operations of `linalg` have
one and become `frag` by [passes](design.md).

```text
{others}
```
"""


def whole() -> str:
    """The page with every operation."""
    return IR.format(
        frag=_aligned(map(_line, Frag.operations, catalogue.FRAG)),
        frag_attributes=_aligned(map(_parameters, Frag.attributes)),
        ptx=_aligned(map(_line, Ptx.operations, catalogue.PTX)),
        ptx_attributes=_aligned(map(_parameters, Ptx.attributes)),
        others=_aligned(map(_roads, sorted(catalogue.OTHERS))),
    )


def _line(cls: type[Operation], row: Row) -> tuple[str, str, str]:
    assert issubclass(cls, IRDLOperation)
    definition = cls.get_irdl_definition()
    words = [
        (name, part)
        for name, part in definition.properties.items()
        if not name.startswith("static_") and not name.endswith("SegmentSizes")
    ]
    shown = _marked(definition.operands)
    if words:
        shown += f" {{{_marked(words)}}}"
    if definition.regions:
        shown += f" [{_marked(definition.regions)}]"
    if definition.results:
        shown += f" -> {_marked(definition.results)}"
    return (
        row.operation,
        shown.strip(),
        row.words.replace(",", " ").replace("t.__getitem__", "t[...]"),
    )


def _marked(parts: Iterable[tuple[str, object]]) -> str:
    """Names with `?` and `*`."""
    found: list[str] = []
    for name, part in parts:
        optional, many = isinstance(part, OptionalDef), isinstance(part, VariadicDef)
        found.append(f"{name}{'?' if optional else '*' if many else ''}")
    return " ".join(found)


def _parameters(cls: type[Attribute]) -> tuple[str, str, str]:
    sign = "!" if cls.__name__.endswith("Type") else "#"
    names = ""
    if issubclass(cls, ParametrizedAttribute):
        names = " ".join(name for name, _ in cls.get_irdl_definition().parameters)
    return f"{sign}{cls.name}", names, ""


def _roads(row: Row) -> tuple[str, str, str]:
    columns = {"lowering": "lanes", "writer": "ptx", "meaning": "meaning", "in_lanes": "in lanes"}
    found = [what for column, what in columns.items() if getattr(row, column)]
    return row.operation, ", ".join(found), ""


def _aligned(lines: Iterable[tuple[str, str, str]]) -> str:
    rows = list(lines)
    first, second = (max(len(row[n]) for row in rows) for n in (0, 1))
    second = min(second, 52)
    return "\n".join(f"{a:{first}}  {b:{second}}  {c}".rstrip() for a, b, c in rows)


def stub(dialect: LateDialect, names: Mapping[str, str]) -> str:
    """What type checkers read of a dialect's package."""
    places = {*dialect.late.values(), *dialect.late_attributes.values(), *names.values()}
    places.add("fragir.late_dialect:LateDialect")
    lines: list[str] = []
    for module, *_, name in sorted(map(_key, places)):
        lines.append(f"from {module} import {name} as {name}")
    title = dialect.name.capitalize()
    head = "# Written by `python -m tests.docs.operations` from dialects/catalogue.py."
    return "\n".join([head, "", *lines, "", f"{title}: LateDialect", ""])


def _key(place: str) -> tuple[str, bool, bool, str]:
    """By module; in it constants, classes, functions, as ruff sorts imports."""
    module, _, name = place.partition(":")
    return module, not name.isupper(), name[0].islower(), name


def stub_path(dialect: LateDialect) -> Path:
    return ROOT / "dialects" / dialect.name / "__init__.pyi"


def listed() -> str:
    """docs/api.md with the names of the dialects' packages."""
    text = NAMES.read_text("utf-8")
    for dialect, names in DIALECTS:
        places = [*dialect.late.values(), *dialect.late_attributes.values(), *names.values()]
        every = sorted({place.partition(":")[2] for place in places} | {dialect.name.capitalize()})
        shown = textwrap.fill(", ".join(f"`{name}`" for name in every), 100, break_on_hyphens=False)
        head = rf"(## `fragir\.dialects\.{dialect.name}`\n\n[^\n]+\n\n)[^#]+?\n\n(?=##|\Z)"
        text = re.sub(head, lambda match, shown=shown: f"{match[1]}{shown}\n\n", text)
    return text


def written() -> dict[Path, str]:
    """Every file that is written here."""
    stubs = {stub_path(dialect): stub(dialect, names) for dialect, names in DIALECTS}
    return {PAGE: page(), ON_A_PAGE: whole(), NAMES: listed(), **stubs}


def main() -> None:
    for path, text in written().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
