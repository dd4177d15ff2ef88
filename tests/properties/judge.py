"""Takes a program down the whole road and holds every step against what it means."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.printer import Printer

import fragir
from fragir.compiler import Argument, Kernel, parse
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type
from fragir.reference import compare, evaluate, outputs
from fragir.reference.formats import INTEGERS, encode

Array = npt.NDArray[Any]

DEEP = int(os.environ.get("FRAGIR_DEEP", "1"))
"""How many times as many examples as by default."""


def examples(count: int) -> settings:
    """Settings of a test of whole programs: `count` of them, each takes a while."""
    return settings(
        max_examples=count * DEEP,
        deadline=None,
        derandomize=DEEP == 1,
        # shrinking whole programs takes minutes; the message holds the program
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def divided(
    count: int, parts: int, **strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """A test of `count` drawn programs as `parts` tests, which processes run side by side.

    Each part has a seed of its own. The first program that hypothesis draws is always the simplest:
    of that one part is enough.
    """

    def decorate(test: Callable[..., None]) -> Callable[[int], None]:
        def part_of(part: int) -> None:
            again = part > 0 and DEEP == 1

            def once(**values: Any) -> None:
                nonlocal again
                if again:
                    again = False
                else:
                    test(**values)

            drawn = examples(-(-count // parts) + again)(given(**strategies)(once))
            (hypothesis.seed(part)(drawn) if DEEP == 1 else drawn)()

        part_of.__name__, part_of.__doc__ = test.__name__, test.__doc__
        part_of.__module__, part_of.__qualname__ = test.__module__, test.__qualname__
        return pytest.mark.parametrize("part", range(parts))(part_of)

    return decorate


def text_of(module: ModuleOp) -> str:
    """A module as text."""
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


_parsed: dict[str, ModuleOp] = {}
"""The text that was read last, and what it said: many passes leave a program as it was."""


def survives(level: str, module: ModuleOp) -> None:
    """The module, printed, parses again to the same module, which verifies."""
    text = text_of(module)
    again = _parsed.get(text)
    if again is None:
        again = parse(text, level)
        _parsed.clear()
        _parsed[text] = again
    assert module.is_structurally_equivalent(again), f"after {level}:\n{text}\n{text_of(again)}"


def values(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Array:
    """Random elements in their storage type: normal floats, integers of the whole range."""
    if name in INTEGERS:
        low, high = {"s8": (-128, 128), "u8": (0, 256)}.get(name, (-1000, 1000))
        return encode(rng.integers(low, high, shape), name)
    return encode(rng.standard_normal(shape), name)


def arrange(array: Array, argument: Argument) -> Array:
    """The array in the strides that the argument declares; gaps between rows hold noise."""
    if argument.strides is None:
        return array
    strides = [n for n in argument.strides if isinstance(n, int)]
    assert len(strides) == array.ndim, "only static strides"
    size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    buffer = np.full(size, 77, array.dtype)
    view = np.lib.stride_tricks.as_strided(
        buffer, array.shape, [s * array.itemsize for s in strides]
    )
    view[...] = array
    return view


def inputs(
    signature: Sequence[Argument],
    rng: np.random.Generator,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float] | None = None,
) -> list[Any]:
    """Random arguments for a kernel."""
    result: list[Any] = []
    for argument in signature:
        if not argument.is_memory:
            known = (scalars or {}).get(argument.name)
            if known is None:
                whole = isinstance(argument.type, IndexType | IntegerType)
                known = int(rng.integers(0, 4)) if whole else float(rng.standard_normal())
            result.append(known)
            continue
        shape = tuple(n if isinstance(n, int) else sizes[n] for n in argument.dims)
        name = element_name(memref_type(argument.type).element_type)
        result.append(arrange(values(rng, name, shape), argument))
    return result


def judge(
    program: str,
    target: str,
    sizes: Mapping[str, int] | None = None,
    *,
    scalars: Mapping[str, float] | None = None,
    seed: int = 0,
    assemble: bool = True,
    unjudged: float = 0.5,
) -> Kernel:
    """Compiles, assembles and emulates a program of one function, and checks everything.

    The IR survives printing at every level; ptxas has nothing to say; the emulator finds nothing
    and agrees with the reference. `unjudged`: the share of elements that may have no bound, or be
    NaN where all are.
    """
    module = parse(program)
    survives("parse", module)
    kernel = fragir.compile(module, target=target, observe=survives)
    if assemble:
        assert kernel.assembled.warnings == []
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    arguments = inputs(kernel.signature, np.random.default_rng(seed), sizes or {}, scalars)
    grid = kernel.grid(kernel.sizes(arguments))
    tiled = "frag.grid" in function.attributes
    expected = evaluate(function, arguments, target=target, grid=grid if tiled else (1, 1, 1))
    # every check: races, fences, fragments, what nobody has written
    report = kernel.launch(
        grid, None, *arguments, on="emulator", schedule=seed or None, check=True, target=target
    )
    assert report.findings == []
    written = outputs(function)
    assert written
    for number in written:
        argument, reference = kernel.signature[number], expected[number]
        assert reference is not None
        name = element_name(memref_type(argument.type).element_type)
        result = np.ascontiguousarray(arguments[number])
        found = compare(reference, result, name, allow_unjudged=unjudged)
        assert found.passed, f"{argument.name}: {found}\n{program}"
    return kernel
