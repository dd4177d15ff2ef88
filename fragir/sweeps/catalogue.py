"""The sweeps there are, by name, and how a worker gets the one that it is to run.

A sweep is a Python file with a `SWEEP`; the first line of its docstring says what it is. Those of
the project stand in `benchmarks/sweeps/` of a checkout, `PACKAGED` ones in the package, and a user
names a file of their own. Another machine finds the first two in its own installation, which must
have the same text; a user's file is sent to it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from fragir.errors import FragirError, pass_on
from fragir.sweeps.definition import Sweep

PACKAGED = {"judge": "fragir.judge.batch", "validation": "fragir.validation.report"}
_PACKAGE = Path(__file__).parents[1]
CHECKOUT = _PACKAGE.parent
FOLDER = CHECKOUT / "benchmarks" / "sweeps"


@dataclass(frozen=True)
class SweepSource:
    """Where a sweep comes from. `module` is imported; else `text` is the file itself."""

    name: str
    path: str
    digest: str
    module: str | None = None
    text: str | None = None


def names() -> list[str]:
    """The names of the sweeps that can be had without naming a file."""
    found = {path.stem.replace("_", "-") for path in FOLDER.glob("[!_]*.py") if _is_sweep(path)}
    return sorted(found | PACKAGED.keys())


def _is_sweep(path: Path) -> bool:
    return any(line.startswith("SWEEP = ") for line in path.read_text("utf-8").splitlines())


def about(source: SweepSource) -> str:
    """The first line of a sweep's docstring, without importing it."""
    text = source.text if source.text is not None else Path(source.path).read_text("utf-8")
    lines = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    return lines[0] if lines else ""


def find(name: str) -> SweepSource:
    """The sweep called so, or the one in the file called so. FragirError where there is none."""
    if name.endswith(".py") or "/" in name:
        return _from_file(Path(name))
    if name in PACKAGED:
        module = PACKAGED[name]
        path = _PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
        return SweepSource(name, str(path), _digest(path.read_bytes()), module)
    if name in names():
        path = FOLDER / f"{name.replace('-', '_')}.py"
        return SweepSource(
            name, str(path), _digest(path.read_bytes()), f"benchmarks.sweeps.{path.stem}"
        )
    hint = "`fragir sweep` lists them"
    if not FOLDER.is_dir():
        hint = f"those of benchmarks/sweeps/ need a checkout of fragir; here: {', '.join(PACKAGED)}"
    raise FragirError(f"there is no sweep {name!r}", hint=hint)


def _from_file(path: Path) -> SweepSource:
    if path.is_char_device():
        raise FragirError("cannot read this sweep: it is a device", str(path))
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
        ast.parse(text, str(path))
    except OSError as error:
        raise FragirError(f"cannot read this sweep: {error.strerror}", str(path)) from error
    except (ValueError, SyntaxError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise FragirError(f"this is no Python: {error}", str(path), line) from error
    return SweepSource(path.stem.replace("_", "-"), str(path), _digest(data), text=text)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@cache
def load(source: SweepSource) -> Sweep:
    """The sweep itself, here or on a worker. FragirError where this installation has another."""
    if source.module is None:
        module = _run_text(source)
    else:
        here = find(source.name)
        if here.digest != source.digest:
            raise FragirError(
                f"this installation has another version of the sweep {source.name}",
                here.path,
                hint="workers need the same checkout as the one that sends the tasks",
            )
        if str(CHECKOUT) not in sys.path:
            sys.path.insert(0, str(CHECKOUT))
        module = importlib.import_module(source.module)
    found = getattr(module, "SWEEP", None)
    if not isinstance(found, Sweep):
        hint = "SWEEP = Sweep(tasks, run); see docs/sweeps.md"
        raise FragirError("this file defines no sweep", source.path, hint=hint)
    return found


def _run_text(source: SweepSource) -> ModuleType:
    module = ModuleType(f"fragir_sweep_{source.digest[:16]}", source.name)
    module.__file__ = source.path
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(source.text or "", source.path, "exec"), vars(module))
    except Exception as error:
        pass_on(error)
        del sys.modules[module.__name__]
        from fragir.sweeps.faults import error_text

        raise FragirError(
            f"this sweep cannot be imported: {error_text(error)}", source.path
        ) from error
    return module
