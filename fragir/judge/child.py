"""The process in which a user's case file runs: `python -m fragir.judge.child FOLDER`.

It reads `request.json` in the folder and leaves `answer.json` and arrays there, all of it data:
what the case file prints, or leaves elsewhere, nobody reads. It limits itself before it imports
anything of the user's. The judge starts it, before there is any result of the kernel's.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from fragir.algebra import Values
from fragir.algebra.values import SPELLINGS, as_values, named_functions, spelling
from fragir.errors import FragirError
from fragir.judge.case import Array, Case, typed
from fragir.judge.rounding import Rounded, UnboundedError, Working, as_rounded
from fragir.judge.shipping import Document, pack_case, random_inputs, save_array, write_json
from fragir.reference.formats import FLOATS, decode

#: What is written of values: elements of Z/P, and where those say nothing if they differ.
PARTS = ("p", "doubt")
#: Cases of one function.
MOST_CASES = 1000


class _CaseError(Exception):
    """What is wrong with a case file, in a sentence."""


# -- what the user wrote ---------------------------------------------------------------------------


def find_function(text: str) -> Callable[[np.random.Generator], Iterable[Case]]:
    """What MODULE:FUNCTION or FILE.py:FUNCTION names."""
    place, _, name = text.rpartition(":")
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    found = getattr(module, name, None)
    if not callable(found):
        raise _CaseError(f"{place} has no function {name}")
    return cast("Callable[[np.random.Generator], Iterable[Case]]", found)


def _module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise _CaseError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise _CaseError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# -- references ------------------------------------------------------------------------------------


def _numbers(case: Case) -> list[Array]:
    return [np.array(decode(*typed(one))) for one in case.inputs]


def _results(case: Case, inputs: Sequence[object]) -> tuple[Any, ...]:
    """What the reference gives of these: as many as there are outputs."""
    with np.errstate(all="ignore"):
        found: object = case.reference(*inputs)
    results = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
    if len(results) != len(case.outputs):
        raise _CaseError(
            f"the reference gives {len(results)} arrays, the case has {len(case.outputs)} outputs"
        )
    return results


def _check_shapes(case: Case, results: Sequence[Any]) -> None:
    for number, (result, output) in enumerate(zip(results, case.outputs, strict=True)):
        array, element = typed(output)
        wanted = np.shape(decode(array, element))
        if tuple(result.shape) != wanted:
            raise _CaseError(
                f"the reference gives an array of shape {tuple(result.shape)} for output {number},"
                f" which has {wanted}"
            )


def _plain(case: Case, inputs: Sequence[Array]) -> list[Array]:
    results = [np.asarray(one) for one in _results(case, inputs)]
    for one in results:
        if one.dtype.kind not in "biuf":
            raise _CaseError(f"the reference gives {one.dtype}, which are no numbers")
    _check_shapes(case, results)
    return [one.astype(np.int64 if one.dtype.kind in "biu" else np.float64) for one in results]


def _is_float(element: str) -> bool:
    return element in FLOATS


def _bounds(case: Case, inputs: Sequence[Array]) -> list[Array]:
    """How far the results may be off. UnboundedError, or anything, where that is not known."""
    working = Working(*case.formats)
    given = [
        as_rounded(x, working) if _is_float(typed(one)[1]) else x.copy()
        for x, one in zip(inputs, case.inputs, strict=True)
    ]
    results = _results(case, given)
    _check_shapes(case, results)
    return [one.bound if isinstance(one, Rounded) else np.zeros(np.shape(one)) for one in results]


def _functions(
    case: Case, inputs: Sequence[Array], seed: Sequence[int], rounds: int
) -> list[list[Values]]:
    """What the results are as functions of the inputs: for each way to spell exp, if it matters."""
    elements = [typed(one)[1] for one in case.inputs]
    given = random_inputs(inputs, elements, seed, rounds)
    found: list[list[Values]] = []
    for name in SPELLINGS:
        with spelling(name):
            results = _results(case, [x.copy() for x in given])
        _check_shapes(case, results)
        values = [as_values(one, rounds) for one in results]
        if not found or any(
            (one.p != other.p).any() for one, other in zip(values, found[0], strict=True)
        ):
            found.append(values)
    return found


def _depends(case: Case, inputs: Sequence[Array], results: Sequence[Array]) -> bool:
    """Whether the reference gives something else of other inputs; whatever it raises for those is
    an answer too."""
    shaken = [x[..., ::-1] * 3 + (x.ndim > 0) for x in inputs]
    try:
        others = [np.asarray(one) for one in _results(case, shaken)]
    except Exception:
        return True
    pairs = zip(results, others, strict=True)
    return not all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def answer_case(case: Case, name: str, folder: Path, seed: Sequence[int], rounds: int) -> Document:
    """Writes a case and what its reference gives. `seed`: of the elements of inputs."""
    document = pack_case(case, folder, name)
    numbers = _numbers(case)

    def fresh() -> list[Array]:
        return [x.copy() for x in numbers]

    given = fresh()
    # views of an input, too, are what was given
    arrays = [np.asarray(one) for one in _results(case, given)]
    returned = any(np.may_share_memory(one, x) for one in arrays for x in given)
    plain = _plain(case, fresh())
    equal = any(np.array_equal(one, x) for one in plain if one.size for x in numbers)
    document["copied"] = returned or equal
    document["constant"] = bool(numbers) and not _depends(case, fresh(), plain)
    document["results"] = [
        save_array(folder, f"{name}_result_{i}", one) for i, one in enumerate(plain)
    ]
    try:
        bounds = _bounds(case, fresh())
        document["bounds"] = [
            save_array(folder, f"{name}_bound_{i}", one) for i, one in enumerate(bounds)
        ]
        document["unbounded"] = None
    except Exception as error:
        document["bounds"] = None
        document["unbounded"] = _sentence(error, UnboundedError, FragirError)
    try:
        with named_functions() as names:
            found = _functions(case, fresh(), seed, rounds)
        document["functions"] = [
            [
                [save_array(folder, f"{name}_{part}_{i}_{k}", getattr(one, part)) for part in PARTS]
                for i, one in enumerate(values)
            ]
            for k, values in enumerate(found)
        ]
        document["names"] = sorted(names)
        document["unknown"] = None
    except Exception as error:
        document["functions"], document["names"] = None, []
        document["unknown"] = _sentence(error, FragirError)
    return document


def _sentence(error: BaseException, *known: type[BaseException]) -> str:
    words = " ".join(str(error).split())[:300]
    return words if isinstance(error, known) and words else f"{type(error).__name__}: {words}"


# -- the process -----------------------------------------------------------------------------------


def limit(seconds: float, memory: int, *, processes: bool = True) -> None:
    """Of this process: seconds of CPU time; bytes of memory, which are those of a file too; and
    few further processes."""
    try:
        import resource
    except ImportError:  # not on this system: the judge still ends it by the clock
        return
    whole = max(1, int(seconds) + 1)
    wanted = {"RLIMIT_CPU": whole, "RLIMIT_AS": memory, "RLIMIT_FSIZE": memory, "RLIMIT_CORE": 0}
    if processes:
        wanted["RLIMIT_NPROC"] = 64
    for name, value in wanted.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        _, most = resource.getrlimit(number)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(number, (value, value))


def _answer(request: Document, folder: Path) -> Document:
    function = find_function(str(request["case"]))
    seed, rounds = int(request["seed"]), int(request["rounds"])
    rng = np.random.default_rng(seed)
    found: list[Document] = []
    for number, case in enumerate(function(rng)):
        if not isinstance(cast("object", case), Case):
            raise _CaseError(f"it yields {type(case).__name__}, no fragir.judge.Case")
        if number == MOST_CASES:
            raise _CaseError(f"it yields more than {MOST_CASES} cases")
        found.append(answer_case(case, f"case_{number}", folder, (seed, number), rounds))
    return {"cases": found}


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text("utf-8"))
    limit(float(request["seconds"]), int(request["memory"]))
    try:
        answer = _answer(request, folder)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not f.filename.startswith((os.path.dirname(__file__), "<"))]
        words = _sentence(error, _CaseError, FragirError)
        last = own[-1] if own and not isinstance(error, _CaseError) else None
        answer = {
            "error": words,
            "file": None if last is None else last.filename,
            "line": None if last is None else last.lineno,
        }
    write_json(folder / "answer.json", answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
