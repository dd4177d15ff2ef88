"""The reference of operations on tiles, docs/operations.md, from docstrings and golden programs.

python -m tests.docs.operations        writes it anew
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef

from fragir.builder.kernel import KernelBuilder
from fragir.builder.values import Tile
from fragir.dialects.frag import Frag

ROOT = Path(__file__).resolve().parents[2]
PAGE, GOLDEN = ROOT / "docs" / "operations.md", ROOT / "tests" / "golden"
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


def main() -> None:
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
