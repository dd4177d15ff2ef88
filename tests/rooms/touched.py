"""The tests that a change of a room can touch: `make room R=layout`.

    python -m tests.rooms.touched emulator/checks [passes/tiling ...]

prints the files of tests from which imports lead to a room, the nearest first. Imports are read
from the sources, those within functions and for types too. Where a name of a package with an
`__init__.pyi` is used, it leads to the module that has it; where a module is named by a string, as
commands, checks and operations are, that is an import as well; a test that starts processes reaches
whatever a command does.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Where sources are, and the name that they are imported by.
FOLDERS = {
    **{"fragir": "fragir", "dialects": "fragir.dialects", "passes": "fragir.passes"},
    **{"tests": "tests", "benchmarks": "benchmarks"},
}
LINKS = ("fragir/dialects/", "fragir/passes/")
#: What a process that a test starts may do.
PROGRAM = "fragir.cli.main"
#: A module that a string names, and what is in it.
_PLACE = re.compile(r"^\.?([A-Za-z_][\w.]*)(?::\w+)?$")


@cache
def files() -> dict[str, Path]:
    """The sources by the name of their module, a package's `__init__` by that of the package."""
    found: dict[str, Path] = {}
    for folder, name in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            if path.relative_to(ROOT).as_posix().startswith(LINKS):
                continue
            parts = inner[:-1] if inner[-1] == "__init__" else inner
            found[".".join((name, *parts))] = path
    return found


class Imports:
    """What the modules import. `sources`: by module; `doors`: by package, the module of each name
    in its `__init__.pyi`; `packages`: those of the modules that are one.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        doors: Mapping[str, Mapping[str, str]],
        packages: Iterable[str] = (),
    ) -> None:
        self.sources, self.doors, self.packages = sources, doors, frozenset(packages)

    def of(self, module: str) -> set[str]:
        """The modules that one leads to."""
        tree = ast.parse(self.sources[module])
        return {m for m in self._of(module, tree) if m in self.sources} - {module}

    def _of(self, module: str, tree: ast.Module) -> Iterator[str]:
        home = module if module in self.packages else module.rpartition(".")[0]
        named: dict[str, str] = {}  # a variable -> the package with a door that it is
        words: set[str] = set()
        begins = {"", f"{home}."}
        for node in ast.walk(tree):
            match node:
                case ast.Import():
                    for alias in node.names:
                        yield alias.name
                        first = alias.name.partition(".")[0]
                        named[alias.asname or first] = alias.name if alias.asname else first
                case ast.ImportFrom():
                    package = node.module or ""
                    if node.level:
                        above = home.split(".")[: len(home.split(".")) - node.level + 1]
                        package = ".".join([*above, *([package] if package else [])])
                    yield package
                    for alias in node.names:
                        yield from self._name(package, alias.name)
                        named[alias.asname or alias.name] = f"{package}.{alias.name}"
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in named:
                    yield from self._name(named[name], attribute)
                case ast.Constant(value=str() as text):
                    words.update(_PLACE.findall(text))
                case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
                    begins.add(text)
                case _:
                    pass
        for word in words:
            for begin in begins:
                yield begin + word
        if "subprocess" in named and module.startswith("tests."):
            yield PROGRAM

    def _name(self, package: str, name: str) -> Iterator[str]:
        yield f"{package}.{name}"
        if name in self.doors.get(package, {}):
            yield self.doors[package][name]


@cache
def imports() -> Imports:
    """Those of this checkout."""
    sources = {module: path.read_text("utf-8") for module, path in files().items()}
    doors: dict[str, dict[str, str]] = {}
    packages = [module for module, path in files().items() if path.name == "__init__.py"]
    for module in packages:
        stub = files()[module].with_suffix(".pyi")
        if stub.exists():
            found = re.findall(r"^from (\.[\w.]*) import (\w+)", stub.read_text("utf-8"), re.M)
            doors[module] = {name: f"{module}{place}".rstrip(".") for place, name in found}
    return Imports(sources, doors, packages)


def distances(rooms: Iterable[str], imported: Mapping[str, set[str]]) -> dict[str, int]:
    """How many imports each module is away from the rooms, of those that reach one.

    A test comes with the conftest.py of its folders.
    """
    importers: dict[str, set[str]] = {}
    for module, others in imported.items():
        for other in others:
            importers.setdefault(other, set()).add(module)
        if module.endswith(".conftest"):
            folder = module.removesuffix("conftest")
            importers.setdefault(module, set()).update(m for m in imported if m.startswith(folder))
    begins = tuple(rooms)
    starts = [m for m in imported if any(m == r or m.startswith(f"{r}.") for r in begins)]
    found = dict.fromkeys(starts, 0)
    queue = deque(starts)
    while queue:
        module = queue.popleft()
        for importer in importers.get(module, ()):
            if importer not in found:
                found[importer] = found[module] + 1
                queue.append(importer)
    return found


def room_of(text: str) -> str:
    """A room's path as the name of its modules; SystemExit where there is none."""
    path = text.strip("/").removesuffix(".py").removeprefix("fragir/").replace("/", ".")
    for name in (f"fragir.{path}", path):
        if any(m == name or m.startswith(f"{name}.") for m in files()):
            return name
    raise SystemExit(f"there is no room {text}; one is named by its path: R=emulator/checks")


def touched(rooms: Iterable[str]) -> list[str]:
    """The files of tests that reach a room, the nearest first; then those of the rooms."""
    found = distances(map(room_of, rooms), {module: imports().of(module) for module in files()})
    tests = [m for m in found if m.startswith("tests.") and "test_" in m.rpartition(".")[2][:5]]
    paths = [files()[m].relative_to(ROOT).as_posix() for m in sorted(tests, key=found.__getitem__)]
    return [*paths, *(["tests/rooms"] if paths else [])]


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("name a room by its path: make room R=emulator/checks")
    print("\n".join(touched(sys.argv[1:])))
