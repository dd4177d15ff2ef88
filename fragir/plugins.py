"""What other packages add: dialects, passes, targets and stages, by entry points.

xDSL's own entry point `xdsl.universe` gives dialects, passes and targets; `fragir.stages` gives
steps of the pipeline. Looking for entry points takes some 30 ms, and a package may take long to
import: nobody asks before a name turns up that neither xDSL nor fragir has. A package that cannot
be used matters to those only who miss what it may have had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.passes import ModulePass

from fragir.errors import FragirError, pass_on
from fragir.late_dialect import LateDialect
from fragir.universe import DIALECTS, OWN_DIALECTS, PASSES, TARGETS, lazily

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from xdsl.universe import Universe
    from xdsl.utils.target import Target

UNIVERSES = "xdsl.universe"
_OURS = ("xdsl.universe:XDSL_UNIVERSE", "fragir.universe:FRAGIR_UNIVERSE")

Kind = Literal["dialect", "pass", "target"]
_T = TypeVar("_T")
Factory = Callable[[], _T]


# What xDSL and fragir have --------------------------------------------------------------------


@cache
def own_dialects() -> Mapping[str, Factory[Dialect]]:
    """The dialects of xDSL and fragir, each imported when it is used."""
    return {**get_all_dialects(), **lazily(DIALECTS), **lazily(OWN_DIALECTS)}


@cache
def own_passes() -> Mapping[str, Factory[type[ModulePass]]]:
    """The passes of xDSL and fragir, each imported when it is used."""
    from xdsl.transforms import get_all_passes

    return {**get_all_passes(), **lazily(PASSES)}


@cache
def own_targets() -> Mapping[str, Factory[type[Target]]]:
    """The targets (`-t`) of xDSL and fragir."""
    from xdsl.targets import get_all_targets

    return {**get_all_targets(), **lazily(TARGETS)}


# What other packages have ---------------------------------------------------------------------


class Plugins(NamedTuple):
    """The packages found, by name; `broken` says of those that cannot be used why not."""

    universes: dict[str, Universe]
    modules: set[str]
    broken: dict[str, str]

    def names(self, kind: Kind) -> Iterator[str]:
        """What all packages that work have of a kind."""
        for universe in self.universes.values():
            yield from _of(universe, kind)

    def find(self, kind: Kind, name: str) -> Factory[Any] | None:
        """Another package's dialect, pass or target; None where none has it.

        FragirError where two have it, and where the package also claims a name of xDSL's or
        fragir's, which no tool of xDSL's would bear.
        """
        homes = [package for package, u in self.universes.items() if name in _of(u, kind)]
        if not homes:
            return None
        if len(homes) > 1:
            raise FragirError(
                f"the packages {' and '.join(homes)} both have a {kind} {name}",
                hint="uninstall one of them",
            )
        (package,) = homes
        for each in ("dialect", "pass", "target"):
            taken = _own_factories(each).keys() & _of(self.universes[package], each).keys()
            for other in sorted(taken):
                raise FragirError(
                    f"the package {package} has a {each} {other}, which is the name of one of "
                    f"{'fragir' if other in _OWN[each] else 'xDSL'}'s",
                    hint="it must give it another name",
                )
        return _guard_factory(package, kind, name, _of(self.universes[package], kind)[name])

    def excuses(self) -> str:
        """`; the package toys, which may have it, cannot be used: ...`, or nothing."""
        return "".join(
            f"; the package {package}, which may have it, cannot be used: {reason}"
            for package, reason in self.broken.items()
        )


def excuses_for(name: str) -> str:
    """The same for an operation, attribute or type that is not there."""
    return "" if name.partition(".")[0] in own_dialects() else plugins().excuses()


def _of(universe: Universe, kind: Kind) -> Mapping[str, Factory[Any]]:
    match kind:
        case "dialect":
            return universe.all_dialects
        case "pass":
            return universe.all_passes
        case "target":
            return universe.all_targets


def _own_factories(kind: Kind) -> Mapping[str, Factory[Any]]:
    match kind:
        case "dialect":
            return own_dialects()
        case "pass":
            return own_passes()
        case "target":
            return own_targets()


_OWN: Mapping[Kind, Mapping[str, object]] = {
    "dialect": DIALECTS,
    "pass": PASSES,
    "target": TARGETS,
}
_WANTED: Mapping[Kind, str] = {
    "dialect": "an xdsl.ir.Dialect",
    "pass": "a subclass of ModulePass",
    "target": "a subclass of Target",
}


def _is_a(kind: Kind, found: object) -> bool:
    from xdsl.utils.target import Target

    match kind:
        case "dialect":
            return isinstance(found, Dialect)
        case "pass":
            return isinstance(found, type) and issubclass(found, ModulePass)
        case "target":
            return isinstance(found, type) and issubclass(found, Target)


def _guard_factory(package: str, kind: Kind, name: str, factory: Factory[Any]) -> Factory[Any]:
    """The factory, whose failures are told as the package's."""

    def made() -> Any:
        try:
            found = factory()
        except Exception as error:
            pass_on(error)
            raise FragirError(
                f"the package {package} fails to give its {kind} {name}: {words_of(error)}",
                hint=f"this is a fault of {package}'s; --debug shows the traceback",
            ) from error
        named = getattr(found, "name", None)
        if not _is_a(kind, found) or named != name:
            shown = f"{type(found).__name__} named {named}" if isinstance(named, str) else found
            raise FragirError(
                f"the package {package} gives {shown} for its {kind} {name}",
                hint=f"its universe must give {_WANTED[kind]} of that name",
            )
        return found

    return made


def words_of(error: BaseException) -> str:
    """`ImportError: no module named x`, in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words.rstrip('.')}" if words else type(error).__name__


def entries(group: str) -> list[tuple[str, EntryPoint]]:
    """(package, entry point) of a group, without xDSL's and ours, in order."""
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group=group) if entry.value not in _OURS]
    named = [(entry.dist.name if entry.dist is not None else entry.name, entry) for entry in found]
    return sorted(named, key=lambda pair: (pair[0], pair[1].name))


@cache
def plugins() -> Plugins:
    """The packages with an entry point `xdsl.universe`, imported at the first call."""
    from xdsl.universe import Universe

    result = Plugins({}, set(), {})
    for package, entry in entries(UNIVERSES):
        result.modules.add(entry.module.partition(".")[0])
        try:
            universe = entry.load()
        except (Exception, SystemExit) as error:
            result.broken[package] = words_of(error)
            continue
        if not isinstance(universe, Universe):
            reason = f"{entry.value} is a {type(universe).__name__}, not an xdsl.universe.Universe"
            result.broken[package] = reason
            continue
        known = result.universes.get(package)
        if known is None:
            result.universes[package] = universe
        else:
            result.universes[f"{package} ({entry.name})"] = universe
    return result


# Whose code it is -----------------------------------------------------------------------------


def package_of(kind: Callable[..., object]) -> str | None:
    """The package that a class or function stands in; None for xDSL's and fragir's own."""
    top = kind.__module__.partition(".")[0]
    return None if top in ("fragir", "xdsl") else top


def package_text(package: str) -> str:
    """A package in a message: what a user's script defines is of the program itself."""
    return "this program" if package == "__main__" else package


def imported_packages() -> set[str]:
    """Those that have been asked for something, by the names that they are imported with."""
    return plugins().modules if plugins.cache_info().currsize else set()


def packages_of(module: ModuleOp) -> set[str]:
    """The packages, but for xDSL and fragir, of a module's operations and attributes."""
    kinds: set[type] = set()
    for op in module.walk():
        kinds.add(type(op))
        values: list[SSAValue] = [*op.operands, *op.results]
        values += [x for region in op.regions for block in region.blocks for x in block.args]
        found = [*(x.type for x in values), *op.attributes.values(), *op.properties.values()]
        kinds.update(type(part) for attribute in found for part in _parts(attribute))
    return {package for kind in kinds if (package := package_of(kind)) is not None}


def _parts(attribute: Attribute) -> Iterator[Attribute]:
    """An attribute and those that it is made of."""
    yield attribute
    inner: Iterable[Attribute] = ()
    if isinstance(attribute, ParametrizedAttribute):
        inner = attribute.parameters
    elif isinstance(attribute, ArrayAttr):
        inner = cast("ArrayAttr[Attribute]", attribute).data
    elif isinstance(attribute, DictionaryAttr):
        inner = attribute.data.values()
    for part in inner:
        yield from _parts(part)


# Parsing --------------------------------------------------------------------------------------


class FragirContext(Context):
    """Every dialect of xDSL and fragir, each imported when it is used, and those of other packages
    as soon as a name of theirs turns up."""

    def __init__(self, allow_unregistered: bool = False) -> None:
        super().__init__(allow_unregistered)
        self._registered_dialects.update(own_dialects())
        self._late: dict[str, LateDialect] = {}

    def clone(self) -> FragirContext:
        copy = FragirContext()
        vars(copy).update(vars(super().clone()))
        copy._late = self._late.copy()
        return copy

    def _look_for(self, name: str) -> None:
        """Registers another package's dialect that a name begins with, if it is needed, and loads
        an attribute that comes late."""
        dialect, dot, _ = name.partition(".")
        late = self._late.get(dialect)
        if late is not None and not (name in self._loaded_types or name in self._loaded_attrs):
            found = late.find_attribute(name)
            if found is not None:
                self.load_attr_or_type(found)
        if dot and dialect not in self._registered_dialects:
            factory = plugins().find("dialect", dialect)
            if factory is not None:
                self.register_dialect(dialect, factory)

    def load_registered_dialect(self, name: str) -> None:
        factory = self._registered_dialects.get(name)
        dialect = None if factory is None else factory()
        if not isinstance(dialect, LateDialect):
            super().load_registered_dialect(name)
            return
        self._loaded_dialects[name] = dialect
        self._late[name] = dialect
        for op in dialect.early:
            self.load_op(op)
        for attribute in dialect.early_attributes:
            self.load_attr_or_type(attribute)

    def _get_known_op(self, name: str) -> type[Operation] | None:
        found = super()._get_known_op(name)
        if found is None:
            dialect = self._late.get(name.partition(".")[0])
            found = None if dialect is None else dialect.find(name)
            if found is not None:
                self.load_op(found)
        return found

    def get_optional_op(
        self, name: str, *, dialect_stack: Sequence[str] = ()
    ) -> type[Operation] | None:
        self._look_for(name)
        return super().get_optional_op(name, dialect_stack=dialect_stack)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._look_for(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._look_for(name)
        return super().get_optional_attr(name)

    def get_optional_dialect(self, name: str) -> Dialect | None:
        self._look_for(f"{name}.")
        return super().get_optional_dialect(name)
