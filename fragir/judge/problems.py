"""Problems of KernelBench and SOL-ExecBench as cases: their shapes, their reference in torch.

Both say what is to be computed, and nothing of launches: entry, grid and the order of arguments
come from the submission, a function of the inputs and outputs by their names that gives the calls:

    from fragir.judge import KernelCall
    from fragir.judge.problems import kernelbench

    def launch(inputs, outputs):
        x, y = inputs["x"], outputs["0"]
        return KernelCall("softmax", [x, y, x.shape[1]], grid=x.shape[0], block=128)

    def cases(rng):
        yield from kernelbench("23_Softmax.py", launch, rng, sizes={"batch_size": 4, "dim": 300})

The reference is called with what torch takes for tensors (`torch_functions`). Where it asks torch
for a function that is not known there, the numbers are those of torch in float64, and nothing is
known of rounding: give `rtol`.
"""

# torch is not there to be asked, and what stands for arrays has no common type
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from fragir.errors import FragirError
from fragir.judge.case import Array, Case, KernelCall, TypedArray
from fragir.judge.torch_functions import NotKnownError, TorchArray, bare, tensor_numbers
from fragir.reference.formats import encode

#: What a submission gives: inputs and outputs by name -> calls.
Launch: TypeAlias = (
    "Callable[[Mapping[str, Any], Mapping[str, Array]], KernelCall | Sequence[KernelCall]]"
)

#: Types of SOL-ExecBench, and torch's.
_ELEMENTS = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int64": "s64",
    "int32": "s32",
    "int16": "s16",
    "int8": "s8",
    "bool": "u8",
}


def _torch() -> ModuleType:
    try:
        return import_module("torch")
    except ImportError as error:
        raise FragirError(
            "the reference of this problem is in torch, which is not installed",
            hint="pip install torch; no GPU is needed",
        ) from error


def _element(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _ELEMENTS:
        raise FragirError(f"tensors of {name} are not known here")
    return _ELEMENTS[name]


def _stored(numbers: Array, element: str) -> TypedArray:
    return np.ascontiguousarray(encode(numbers, element)), element


def _case(
    given: Mapping[str, tuple[Array, str] | float],
    outputs: Mapping[str, tuple[tuple[int, ...], str]],
    compute: Callable[..., Any],
    launch: Launch,
    more: Mapping[str, Any],
) -> Case:
    """`given`: numbers and types of inputs, or scalars; `compute`: of these in their order."""
    typed: dict[str, TypedArray | float] = {
        name: _stored(*value) if isinstance(value, tuple) else value
        for name, value in given.items()
    }
    results = {
        name: _stored(np.zeros(shape), element) for name, (shape, element) in outputs.items()
    }
    named = {name: value[0] if isinstance(value, tuple) else value for name, value in typed.items()}
    calls = launch(named, {name: array for name, (array, _) in results.items()})
    arrays = [value for value in typed.values() if isinstance(value, tuple)]

    def reference(*inputs: Any) -> Any:
        left = iter(inputs)
        found = compute(*(next(left) if isinstance(v, tuple) else v for v in given.values()))
        return found if len(found) > 1 else found[0]

    return Case(calls, arrays, list(results.values()), reference, **more)


def _computed(run: Callable[..., Any], plain: Callable[..., Any], *inputs: Any) -> tuple[Any, ...]:
    """By the table where it is enough, of numbers else by torch."""
    given = [x if isinstance(x, int | float) else TorchArray(x) for x in inputs]
    try:
        found = run(*given)
    except NotKnownError:
        if not all(isinstance(x, int | float | np.ndarray) for x in inputs):
            raise
        found = plain(*inputs)
    results: tuple[Any, ...] = tuple(found) if isinstance(found, list | tuple) else (found,)
    return tuple(bare(one) for one in results)


def kernelbench(
    path: str,
    launch: Launch,
    rng: np.random.Generator,
    *,
    sizes: Mapping[str, int] | None = None,
    element: str | None = None,
    output: str | None = None,
    **more: Any,
) -> Iterator[Case]:
    """The case of a KernelBench file: `Model`, `get_inputs`, `get_init_inputs`.

    `inputs` of the launch are called as the parameters of `forward`, weights as the model calls
    them; outputs by their numbers. `sizes`: other values of the file's global names, as its own are
    large. `element`: the type that floats are stored in, `output`: that of outputs, where they are
    not as the file has them. `more`: of `Case`.
    """
    torch = _torch()
    torch.manual_seed(int(rng.integers(2**31)))
    space: dict[str, Any] = {"__name__": "problem"}
    exec(compile(Path(path).read_text("utf-8"), path, "exec"), space)
    for name, value in (sizes or {}).items():
        if name not in space:
            raise FragirError(f"{path} has no {name}")
        space[name] = value
    model = space["Model"](*space["get_init_inputs"]()).double().eval()
    inputs = space["get_inputs"]()
    names = list(inspect.signature(model.forward).parameters)
    weights = dict(model.named_parameters())
    tensors = {**dict(zip(names, inputs, strict=False)), **weights}
    given: dict[str, tuple[Array, str] | float] = {}
    for name, value in tensors.items():
        if not hasattr(value, "detach"):
            given[name] = value
            continue
        stored = "f32" if name in weights else _element(value)
        given[name] = (
            tensor_numbers(value),
            element if element and value.is_floating_point() else stored,
        )
    count = len(inputs)

    def run(*values: Any) -> Any:
        for name, value in zip(weights, values[count:], strict=True):
            _replace(model, name, value)
        return model.forward(*values[:count])

    def plain(*values: Any) -> Any:
        return run(*(torch.as_tensor(v) if isinstance(v, np.ndarray) else v for v in values))

    with torch.no_grad():
        compute = partial(_computed, run, plain)
        first = compute(
            *(value[0] if isinstance(value, tuple) else value for value in given.values())
        )
    types = [value[1] for value in given.values() if isinstance(value, tuple)]
    kind = output or next(iter(types), "f32")
    outputs = {str(i): (tuple(one.shape), kind) for i, one in enumerate(first)}
    yield _case(given, outputs, compute, launch, more)


def _replace(model: Any, name: str, value: Any) -> None:
    """Gives a model another weight, whatever it is."""
    *way, last = name.split(".")
    for part in way:
        model = getattr(model, part)
    model._parameters.pop(last, None)
    model.__dict__[last] = value


def sol_execbench(
    folder: str,
    launch: Launch,
    rng: np.random.Generator,
    *,
    sizes: Mapping[str, int] | None = None,
    most: int = 1 << 20,
    **more: Any,
) -> Iterator[Case]:
    """Cases of a folder with `definition.json` and `workload.jsonl`, one a workload.

    `sizes`: other values of axes, constant ones too, for all workloads; workloads with an array of
    more than `most` elements are left out, and it is an error if all are. `more`: of `Case`.
    """
    torch = _torch()
    definition = json.loads(Path(folder, "definition.json").read_text("utf-8"))
    lines = Path(folder, "workload.jsonl").read_text("utf-8").splitlines()
    space: dict[str, Any] = {"__name__": "problem"}
    exec(compile(definition["reference"], f"{folder}/definition.json", "exec"), space)
    run, seen = space["run"], 0
    for line in lines:
        if not line.strip():
            continue
        workload = json.loads(line)
        workload = workload.get("workload") or workload
        axes = _axes(definition, {**workload["axes"], **(sizes or {})}, sizes or {})
        shapes = {
            name: tuple(axes[axis] for axis in spec["shape"])
            for part in ("inputs", "outputs")
            for name, spec in definition[part].items()
            if spec["shape"] is not None
        }
        if any(np.prod(shape, dtype=np.float64) > most for shape in shapes.values()):
            continue
        seen += 1
        torch.manual_seed(int(rng.integers(2**31)))
        given = _inputs(definition, workload, axes, shapes, space, rng, torch)
        outputs = {
            name: (shapes[name], _ELEMENTS[spec["dtype"]])
            for name, spec in definition["outputs"].items()
        }

        def plain(*values: Any) -> Any:
            return run(*(torch.as_tensor(v) if isinstance(v, np.ndarray) else v for v in values))

        yield _case(given, outputs, partial(_computed, run, plain), launch, more)
    if not seen:
        raise FragirError(f"all workloads of {folder} have arrays of more than {most} elements")


def _axes(
    definition: Mapping[str, Any], values: Mapping[str, int], other: Mapping[str, int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, axis in definition["axes"].items():
        if axis["type"] == "const" and name not in other:
            found[name] = int(axis["value"])
        elif axis["type"] != "expr":
            found[name] = int(values[name])
    for name, axis in definition["axes"].items():
        if axis["type"] == "expr":
            found[name] = int(eval(axis["expression"], {"__builtins__": {}}, dict(found)))
    return found


def _inputs(
    definition: Mapping[str, Any],
    workload: Mapping[str, Any],
    axes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    space: Mapping[str, Any],
    rng: np.random.Generator,
    torch: ModuleType,
) -> dict[str, tuple[Array, str] | float]:
    made: Mapping[str, Any] = {}
    if definition.get("custom_inputs_entrypoint"):
        entry = space[definition["custom_inputs_entrypoint"]]
        made = entry(dict(axes), torch.device("cpu"))
    given: dict[str, tuple[Array, str] | float] = {}
    for name, spec in definition["inputs"].items():
        how, element = workload["inputs"][name], _ELEMENTS.get(spec["dtype"])
        if element is None:
            raise FragirError(f"{name}: elements of {spec['dtype']} are not known here")
        if how["type"] == "scalar":
            given[name] = how["value"]
        elif how["type"] == "custom":
            given[name] = tensor_numbers(made[name]), element
        elif how["type"] == "random":
            whole = element[0] in "su"
            draw = rng.integers(0, 2, shapes[name]) if whole else rng.normal(size=shapes[name])
            given[name] = draw, element
        else:
            raise FragirError(f"{name}: inputs of type {how['type']} are not read here")
    return given
