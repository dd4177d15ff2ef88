"""The dialects: every operation, attribute and type, from its definition."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef

from docs.hooks.links import slug
from docs.hooks.pages import code, fenced, table
from fragir.dialects.frag import Frag
from fragir.dialects.linalg import named_table
from fragir.dialects.linalg.registration import names
from fragir.dialects.memories.registration import MEMREF
from fragir.dialects.ptx import Ptx
from fragir.dialects.tensors.registration import TENSOR
from fragir.late_dialect import import_named
from tests.docs.operations import example

FOLDER = "reference/dialects"
_TABLES = (
    named_table.PRODUCTS,
    named_table.QUANTIZED,
    named_table.CONVOLUTIONS,
    named_table.QUANTIZED_CONVOLUTIONS,
)


def files() -> dict[str, str]:
    """Every page by its path on the site."""
    return {
        f"{FOLDER}/frag.md": _frag(),
        f"{FOLDER}/ptx.md": _ptx(),
        f"{FOLDER}/others.md": _others(),
    }


def _frag() -> str:
    operations = sorted(Frag.operations, key=lambda cls: cls.name)
    return f"""\
# Definitions of `frag`

What the operations are made of: operands, words, results, regions, and how they are written. What
each does, with an example, is in [operations on tiles](../../operations.md), reached by its name;
[frag](../../frag.md) has types and what belongs together.

## Operations

{"".join(_operation(cls, f"../../operations.md#{slug(cls.name)}") for cls in operations)}
{_attributes(Frag.attributes)}"""


def _ptx() -> str:
    operations = sorted(Ptx.operations, key=lambda cls: cls.name)
    return f"""\
# Operations of `ptx`

What one lane does: {len(operations)} operations beside those of `arith`, `math` and `scf`. An
example is taken from the programs that the tests parse, print and write as PTX.
[ptx](../../ptx.md) says what holds for all of them, [lifting](../../lifting.md) what `ptx.op` and
`ptx.function` are for.

## Operations

{"".join(_operation(cls) for cls in operations)}
{_attributes(Ptx.attributes)}"""


# An operation ---------------------------------------------------------------------------------


def _operation(cls: type[Operation], explained: str = "") -> str:
    """A heading, what it says, its parts, its syntax; `explained` is a page that says the first."""
    assert issubclass(cls, IRDLOperation)
    definition = cls.get_irdl_definition()
    text = f"[What it does]({explained})." if explained else inspect.cleandoc(cls.__doc__ or "")
    parts = [f"### `{cls.name}`\n", f"{text}\n"]
    rows = [
        *(_part("operand", name, part) for name, part in definition.operands),
        *(_part("property", name, part) for name, part in definition.properties.items()),
        *(_part("attribute", name, part) for name, part in definition.attributes.items()),
        *(_part("result", name, part) for name, part in definition.results),
        *(_part("region", name, part) for name, part in definition.regions),
        *(_part("successor", name, part) for name, part in definition.successors),
    ]
    shown = [row for row in rows if row[0] not in _SIZES]
    if shown:
        parts.append(table(("name", "is", "of type", ""), shown))
    if definition.assembly_format:
        written = " ".join([cls.name, *definition.assembly_format.split()])
        parts.append(fenced(_wrapped(written)))
    traits = ", ".join(f"`{name}`" for name in sorted(_traits(cls)))
    if traits:
        parts.append(f"Traits: {traits}.\n")
    if not explained:
        parts.append(fenced("\n".join(example(cls.name)), "mlir"))
    return "\n".join(parts) + "\n"


_SIZES = ("`operandSegmentSizes`", "`resultSegmentSizes`")


def _part(kind: str, name: str, part: Any) -> tuple[str, str, str, str]:
    several = isinstance(part, VariadicDef) and not isinstance(part, OptionalDef)
    optional = isinstance(part, OptionalDef)
    constraint = getattr(part, "constr", None)
    types = "" if kind in ("region", "successor") else ", ".join(dict.fromkeys(_kinds(constraint)))
    return f"`{name}`", kind, types, "several" if several else "optional" if optional else ""


def _kinds(constraint: Any) -> Iterator[str]:
    """The types or attributes that a constraint of IRDL lets through; none for all."""
    match type(constraint).__name__:
        case "AnyOf":
            for inner in constraint.attr_constrs:
                yield from _kinds(inner)
        case "AllOf":
            yield from _kinds(constraint.attr_constrs[0])
        case "EqAttrConstraint":
            yield code(str(constraint.attr))
        case "BaseAttr":
            yield _named(constraint.attr)
        case "ParamAttrConstraint":
            yield _named(constraint.base_attr)
        case _:
            for name in ("constr", "constraint"):
                if hasattr(constraint, name):
                    yield from _kinds(getattr(constraint, name))


def _named(cls: type[Attribute]) -> str:
    """`vector` for VectorType: the name in programs, where there is one."""
    name = getattr(cls, "name", None)
    return f"`{name}`" if isinstance(name, str) else f"`{cls.__name__}`"


def _traits(cls: type[IRDLOperation]) -> Iterator[str]:
    for trait in cls.traits:
        name = type(trait).__name__.lstrip("_")
        if name not in ("NoMemoryEffect",) or "Pure" not in {type(t).__name__ for t in cls.traits}:
            yield name


def _wrapped(text: str, width: int = 88) -> str:
    """The words of an assembly format in lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("   ")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def _attributes(attributes: Iterator[type[Attribute]] | Sequence[type[Attribute]]) -> str:
    parts = ["## Attributes and types\n"]
    for cls in sorted(attributes, key=lambda cls: cls.name):
        parts.append(f"### `{cls.name}`\n\n{inspect.cleandoc(cls.__doc__ or '')}\n")
    return "\n".join(parts)


# Dialects that others define ------------------------------------------------------------------


def _others() -> str:
    rows = [(f"`{name}`", *_linalg(name, place)) for name, place in sorted(names().items())]
    more = [
        (f"`{cls.name}`", _sentence(cls))
        for dialect in (MEMREF, TENSOR)
        for cls in dialect.operations
        if cls.__module__.startswith("fragir.")
    ]
    return f"""\
# linalg, memref, tensor

Operations that fragir reads as MLIR prints them and that xDSL lacks or reads otherwise. The rest of
these dialects is xDSL's. [Front doors](../../front-doors.md) says what becomes of them.

## linalg

The loops that index each operand, the output last: `h*s0+kh*d0` is loop `h` times the first stride
plus loop `kh` times the first dilation.

{table(("operation", "what it is", "operands"), rows)}
## memref and tensor

{table(("operation", "what it is"), more)}"""


def _linalg(name: str, place: str) -> tuple[str, str]:
    short = name.removeprefix("linalg.")
    row = next((rows[short] for rows in _TABLES if short in rows), ())
    texts = ", ".join(f"`{text}`" if text else "a number" for text in row)
    return _sentence(import_named(place)), texts


def _sentence(cls: type[object]) -> str:
    """The first sentence of a docstring."""
    text = " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", text)[0]
