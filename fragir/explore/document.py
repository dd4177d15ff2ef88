"""The explorer's page as one file: markup, style, tables, modules, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Hashable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template
from typing import Any

from fragir import isa
from fragir.draw.svg import COUNT, colour, hexadecimal
from fragir.errors import FragirError
from fragir.isa.descriptors import KINDS, TCGEN05_FIELDS, WGMMA_FIELDS, Field, type_codes
from fragir.isa.fragments import scale_blocks
from fragir.isa.model import BITS, Instruction, Operand
from fragir.isa.operand_tiles import operand_tiles
from fragir.isa.tensor_layouts import COPIES, DECOMPRESSIONS, copied
from fragir.isa.tensor_products import KINDS as TENSOR_KINDS
from fragir.isa.tensor_products import SHAPES, depths

# -- bundle ----------------------------------------------------------------------------------------
# Modules of JavaScript as one script, for pages that are one file.
#
# The modules of a folder are joined in the order in which they import each other, and are functions
# of their own in the script. They say `import { a, b as c } from "./x.js";` and `export const`,
# `export function` (also `async`), `export class` or `export { a, b };`, each a statement on one
# line.

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:const|let|(?:async )?function\*?|class) (\w+)|\{([^}]*)\};$)", re.MULTILINE
)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@cache
def bundle(folder: Path, first: str) -> str:
    """One script that does what the module `first` of a folder does."""
    order: dict[str, str] = {}
    _add(folder, first, order, ())
    return '"use strict";\n' + "".join(order.values())


def digest(text: str) -> str:
    """What a content security policy calls an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _add(folder: Path, name: str, order: dict[str, str], above: tuple[str, ...]) -> None:
    if name in order:
        return
    if name in above:
        raise FragirError(f"{name} imports itself by {' and '.join(above)}")
    text = (folder / name).read_text("utf-8")
    for _, imported in _IMPORT.findall(text):
        _add(folder, imported, order, (*above, name))
    order[name] = _as_function(name, text)


def _as_function(name: str, text: str) -> str:
    """A module as `const $name = (() => { ...; return {its names}; })();`."""
    names: list[str] = []

    def exported(found: re.Match[str]) -> str:
        several: str | None = found[2]
        if several is None:
            names.append(found[1])
            return ""
        names.extend(word.strip() for word in several.split(",") if word.strip())
        return "// "

    text = _IMPORT.sub(
        lambda found: f"const {{{_renaming_list(found[1])}}} = {_module_name(found[2])};", text
    )
    text = _EXPORT.sub(exported, text)
    if left := _UNKNOWN.search(text):
        raise FragirError(f"{name} is not joined: {left[0]}")
    return (
        f"const {_module_name(name)} = (() => {{\n{text}return {{ {', '.join(names)} }};\n}})();\n"
    )


def _renaming_list(names: str) -> str:
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)


def _module_name(name: str) -> str:
    return f"${name.removesuffix('.js')}"


# -- tables ----------------------------------------------------------------------------------------
# The page's tables, made from `fragir.isa`: every instruction, packed so that nothing is twice.

_IN_UNITS_OF_16 = ("start", "leading", "stride")


class _Values:
    """Values by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[object] = []

    def number(self, value: object) -> int:
        key = repr(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class _Packed:
    def __init__(self) -> None:
        self.layouts, self.operands, self.operand_sets = _Values(), _Values(), _Values()
        self.targets, self.lowering, self.selectors = _Values(), _Values(), _Values()
        self.reasons, self.forms = _Values(), _Values()

    def instruction(self, found: Instruction) -> list[object]:
        tcgen05 = found.family.startswith("tcgen05")
        operands = [self.operand(operand, tcgen05) for operand in found.operands.values()]
        scaled = "sfa" in found.operands
        return [
            found.mnemonic,
            found.family,
            list(found.shape),
            self.operand_sets.number(operands),
            self.targets.number(dict(found.targets)),
            self.lowering.number(dict(found.lowering)),
            self.selectors.number(list(found.selectors)),
            scale_blocks(found.form) if scaled else 1,
            -1 if found.refused is None else self.reasons.number(found.refused),
        ]

    def operand(self, operand: Operand, tcgen05: bool) -> int:
        registers = operand.registers
        layout = -1 if operand.layout is None else self.layouts.number(str(operand.layout))
        return self.operands.number(
            [
                operand.name,
                registers.count,
                registers.type,
                registers.cls,
                operand.element,
                layout,
                list(operand.shape),
                operand.chunk,
                self.forms.number(list(_forms(operand, tcgen05))),
            ]
        )


def _forms(operand: Operand, tcgen05: bool) -> Iterator[list[object]]:
    """The canonical layouts of a descriptor: major, swizzle, tile, LBO, SBO, layout."""
    if operand.registers.cls != "descriptor":
        return
    for major, per_major in operand_tiles(operand, tcgen05=tcgen05).items():
        for swizzle, form in per_major.items():
            shared = form.shared
            yield [major, swizzle, form.mn, form.k, shared.leading, shared.stride, form.text]


def _field(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "high": field.high,
        "low": field.low,
        "meaning": field.meaning,
        "bytes": field.name in _IN_UNITS_OF_16,
        "unit": field.unit,
    }


def descriptor_tables() -> dict[str, Any]:
    """The fields of descriptors, by kind."""
    return {
        "matrix": {
            "wgmma": [_field(field) for field in WGMMA_FIELDS],
            "tcgen05": [_field(field) for field in TCGEN05_FIELDS],
        },
        "instruction": {
            name: {
                "fields": [{**_field(f), "bytes": False} for f in fields],
                "codes": type_codes(name),
            }
            for name, (fields, _, _) in KINDS.items()
        },
    }


def tensor_tables() -> dict[str, Any]:
    """What the names of products and copies of tcgen05 follow from."""
    kinds = {
        name: {
            "types": list(kind.types),
            "results": list(kind.results),
            "bits": kind.bits,
            "scales": {str(count): list(types) for count, types in kind.scales.items()},
            "depths": list(depths(name)),
            "sparseDepths": list(depths(name, sparse=True)),
        }
        for name, kind in TENSOR_KINDS.items()
    }
    copies = {
        ".".join(filter(None, (form.shape, form.multicast, packed))): str(
            copied(form.shape, form.multicast, decompressed=bool(packed))
        )
        for form in COPIES
        for packed in ("", *DECOMPRESSIONS)
    }
    return {"kinds": kinds, "shapes": [rule._asdict() for rule in SHAPES], "copies": copies}


def tables() -> dict[str, object]:
    """All that the page knows, as JSON."""
    packed = _Packed()
    rows = [packed.instruction(found) for found in isa.instructions()]
    return {
        "instructions": rows,
        "layouts": packed.layouts.values,
        "operands": packed.operands.values,
        "operandSets": packed.operand_sets.values,
        "targetSets": packed.targets.values,
        "loweringSets": packed.lowering.values,
        "selectorSets": packed.selectors.values,
        "reasons": packed.reasons.values,
        "forms": packed.forms.values,
        "bits": dict(BITS),
        "descriptors": descriptor_tables(),
        "tensor": tensor_tables(),
    }


_FOLDER = Path(__file__).parent
_FIRST = "app.js"
_STYLES = ("page.css", "list.css", "matrices.css", "views.css", "phone.css")


def page() -> str:
    """The page as HTML, with every instruction that `fragir.isa` has at this moment.

    It works from a file, asks no network for anything, and says so in its content security
    policy.
    """
    script, style = bundle(_FOLDER, _FIRST), _style()
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(tables(), separators=(",", ":"), ensure_ascii=False)
    return Template(_source("page.html")).substitute(
        policy=policy,
        version=_version(),
        style=style,
        data=data.replace("<", "\\u003c"),
        script=script,
    )


def _source(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _version() -> str:
    try:
        return version("fragir")
    except PackageNotFoundError:  # a tree that is not installed
        return "of a tree"


# Style -------------------------------------------------------------------------------------------


def _style() -> str:
    """The page's style, with the colours of `fragir.draw.svg`, light and dark."""
    light = "".join(f"--c{i}:{hexadecimal(colour(i))};" for i in range(COUNT))
    dark = "".join(f"--c{i}:{hexadecimal(colour(i, dark=True))};" for i in range(COUNT))
    shades = "".join(f".s{i}{{--shade:var(--c{i});background:var(--c{i})}}" for i in range(COUNT))
    text = "".join(map(_source, _STYLES))
    night = re.search(r"/\* dark \*/\n:root \{\n(.*?)\}\n", text, re.DOTALL)
    assert night is not None
    rules = f"{night[1]}{dark}"
    text = text.replace(night[0], "")
    return (
        f":root{{{light}}}\n{text}"
        f':root[data-theme="dark"]{{{rules}}}\n'
        f'@media(prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{rules}}}}}\n'
        f"{shades}"
    )
