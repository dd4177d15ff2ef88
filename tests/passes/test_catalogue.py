"""The rows of dialects/catalogue.py against the files: each names what there is, and all of it."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, get_all_dialects
from xdsl.ir import Attribute, Operation

import fragir.passes.lowering.operations
import fragir.passes.placing
import fragir.passes.writer.operations
import fragir.reference.lanes
from fragir.builder.kernel import KernelBuilder
from fragir.builder.lane import Lane
from fragir.builder.rings import Ring, RingSlot, TileInFlight
from fragir.builder.values import Tile
from fragir.dialects import catalogue, frag, ptx
from fragir.dialects.definition import Canonical
from fragir.dialects.interfaces import LAYOUTS, LOWERINGS, MEANINGS, WRITERS, Layouts
from fragir.errors import FragirError
from fragir.late_dialect import LateDialect, import_named, rows
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.writer.text import KernelText
from fragir.reference.evaluation import scalars
from fragir.reference.lanes.threads import BlockThreads, meaning_of
from fragir.reference.run import Run

BUILDER = Path(KernelBuilder.__module__.replace(".", "/")).parent
ROWS = (*catalogue.FRAG, *catalogue.PTX, *catalogue.OTHERS)
ROOMS: dict[str, tuple[ModuleType, type[object]]] = {
    "lowering": (fragir.passes.lowering.operations, Lanes),
    "meaning": (fragir.reference, Run),
    "in_lanes": (fragir.reference.lanes, BlockThreads),
    "writer": (fragir.passes.writer.operations, KernelText),
    "layouts": (fragir.passes.placing, Layouts),
}
OWNERS = {
    "k": KernelBuilder,
    "t": Tile,
    "ring": Ring,
    "slot": RingSlot,
    "flight": TileInFlight,
    "lane": Lane,
}
PACKAGES = [(frag, catalogue.FRAG_NAMES, frag.Frag), (ptx, catalogue.PTX_NAMES, ptx.Ptx)]


def modules(package: ModuleType) -> list[ModuleType]:
    """Those of a package, not of packages in it."""
    found = [each.name for each in pkgutil.iter_modules(package.__path__) if not each.ispkg]
    return [import_module(f"{package.__name__}.{name}") for name in found]


def test_what_a_row_names_is_there() -> None:
    for row, (column, (room, taken)) in product(ROWS, ROOMS.items()):
        place = row.place(column, room.__name__)
        if place is None:
            continue
        found = getattr(import_module(place[0]), place[1])
        if column == "layouts":
            assert issubclass(found, taken)
            continue
        assert inspect.isfunction(found), place
        first, *_ = inspect.signature(found).parameters.values()
        assert first.annotation in (taken.__name__, taken), f"{place} takes {first.annotation}"


def test_a_row_is_of_an_operation_of_its_name() -> None:
    known = Context()
    for name, factory in get_all_dialects().items():
        known.register_dialect(name, factory)
    for row in ROWS:
        cls = import_named(row.cls) if row.cls else known.get_op(row.operation)
        assert cls.name == row.operation


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each[2].name)
def test_every_class_has_a_row(
    package: tuple[ModuleType, dict[str, str], LateDialect],
) -> None:
    module, _, dialect = package
    classes = {
        cls
        for each in modules(module)
        for cls in vars(each).values()
        if inspect.isclass(cls) and str(getattr(cls, "name", "")).startswith(f"{dialect.name}.")
    }
    operations = {cls for cls in classes if issubclass(cls, Operation)}
    assert operations == set(dialect.operations)
    assert len(operations) > 40
    attributes = {cls for cls in classes if issubclass(cls, Attribute)}
    assert attributes - set(dialect.attributes) == set()
    for name, where in dialect.late_attributes.items():
        assert import_named(where).name == name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each[2].name)
def test_names_are_what_the_tables_say(
    package: tuple[ModuleType, dict[str, str], LateDialect],
) -> None:
    """Modules of the same name, which are attributes of the package too, do not stand before."""
    module, names, dialect = package
    modules(module)
    places = [*dialect.late.values(), *dialect.late_attributes.values(), *names.values()]
    for where in places:
        assert getattr(module, where.partition(":")[2]) is import_named(where)
    assert sorted(set(module.__all__)) == list(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchOp'"):
        _ = module.NoSuchOp


@pytest.mark.parametrize(
    ("column", "package"),
    [
        ("lowering", fragir.passes.lowering.operations),
        ("writer", fragir.passes.writer.operations),
        ("in_lanes", fragir.reference.lanes),
        ("meaning", fragir.reference),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_no_function_is_without_a_row(column: str, package: ModuleType) -> None:
    """Public functions of one operation, by what they take."""
    room, taken = ROOMS[column]
    said = {row.place(column, room.__name__) for row in ROWS}
    lost: set[tuple[str, str]] = set()
    for module in modules(package):
        for name, function in vars(module).items():
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            if function.__module__ != module.__name__:
                continue
            types = [p.annotation for p in inspect.signature(function).parameters.values()]
            if len(types) == 2 and types[0] == taken.__name__ and re.search("Op$", str(types[1])):
                lost.add((module.__name__, name))
    assert lost - said == HELPERS.get(column, set())


# Functions with the parameters of a lowering or meaning that others call.
HELPERS: dict[str, set[tuple[str, str]]] = {
    "lowering": {("fragir.passes.lowering.operations.rings", "await_slot")},
    "meaning": {
        ("fragir.reference.rings", "await_slot"),
        ("fragir.reference.scaled_sums", "scales_of"),
    },
}


def test_a_trait_has_a_function_in_its_row() -> None:
    for row in (*catalogue.FRAG, *catalogue.PTX):
        cls = import_named(row.cls)
        assert cls.has_trait(Canonical) == bool(row.patterns), row.operation
        assert not row.patterns or len(cls.get_trait(Canonical).get_patterns(cls)) == 1


def test_words_are_methods_and_every_operation_that_python_makes_has_one() -> None:
    source = "".join(path.read_text() for path in sorted(BUILDER.glob("*.py")))
    for row in catalogue.FRAG:
        for word in filter(None, row.words.split(",")):
            owner, _, method = word.partition(".")
            assert callable(inspect.getattr_static(OWNERS[owner], method, None)) or isinstance(
                inspect.getattr_static(OWNERS[owner], method), property
            ), word
        cls = row.cls.partition(":")[2]
        made = re.search(rf"frag\.{cls}\(", source) is not None and row.operation != "frag.yield"
        assert made == bool(row.words), row.operation


def test_registries_find_what_rows_say() -> None:
    for row in catalogue.FRAG:
        cls: Any = import_named(row.cls)
        assert (LOWERINGS.of(cls) is not None) == bool(row.lowering), row.operation
        assert (MEANINGS.of(cls) is not None) == bool(row.meaning), row.operation
        assert (meaning_of(row.operation) is not None) == bool(row.in_lanes), row.operation
    for row in catalogue.PTX:
        cls = import_named(row.cls)
        if row.writer:
            assert WRITERS.of(cls) is not None, row.operation
    assert LAYOUTS.of(frag.LoadOp) is not None
    assert MEANINGS.of(arith.AddfOp) is scalars.scalar


FOREIGN = """
operation    cls            lowering   meaning
odd.twice    ops:TwiceOp    code       -         words=k.twice
odd.thrice   ops:ThriceOp   -          code:three
"""


def test_rows_of_other_packages_are_counted_from_them() -> None:
    twice, thrice = rows(FOREIGN, "oddkit")
    assert twice.cls == "oddkit.ops:TwiceOp"
    assert twice.place("lowering", "fragir.passes") == ("oddkit.code", "twice")
    assert twice.place("meaning", "fragir.reference") is None
    assert twice.words == "k.twice"
    assert thrice.place("meaning", "fragir.reference") == ("oddkit.code", "three")


def test_an_operation_has_one_row() -> None:
    (row,) = rows("operation cls\nfrag.load mine:LoadOp", "oddkit")
    with pytest.raises(FragirError, match=r"frag\.load has a row already"):
        LateDialect("frag", [row])


def test_an_operation_with_a_row_is_not_attached_to() -> None:
    with pytest.raises(FragirError, match=r"frag\.load has a lowering to lanes already"):
        LOWERINGS.attach(frag.LoadOp)(lambda lanes, op: None)


LAZY = """
import sys
import fragir.passes.lowering.operations, fragir.passes.writer.operations
import fragir.reference.evaluation
from fragir.dialects import frag, ptx
from fragir.dialects.interfaces import LOWERINGS, MEANINGS
late = lambda: {name.removeprefix("fragir.") for name in sys.modules if name.endswith(".rings")}
assert late() == set(), late()
acquire = frag.AcquireOp
assert late() == {"dialects.frag.rings"}, late()
assert MEANINGS.of(acquire) is not None
assert late() == {"dialects.frag.rings", "reference.rings"}, late()
assert LOWERINGS.of(acquire) is not None
assert "passes.lowering.operations.rings" in late()
"""


def test_nothing_is_imported_before_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", LAZY], check=True)
