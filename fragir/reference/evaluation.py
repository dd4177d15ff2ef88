"""Evaluates a function on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.algebra.numpy_door import Values
from fragir.dialects.interfaces import MEANINGS, accesses_of, root_of
from fragir.errors import FragirError, kind_of
from fragir.reference import algebra
from fragir.reference import contraction as contraction
from fragir.reference import scalars as scalars
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.buffers import places_of
from fragir.reference.formats import FLOATS, INTEGERS, PREDICATE, Array, decode, round_to, type_name
from fragir.reference.memory import BoundedMemory, memory_of
from fragir.reference.run import Note, Run, Value

# -- meanings --------------------------------------------------------------------------------------
# What operations mean: the rows of `fragir.dialects.catalogue` name functions of this room.
#
# Those of arith, math and structured linalg are attached, whole dialects at once.

MEANINGS.found_in("fragir.reference")


def evaluate(
    function: func.FuncOp,
    arguments: Sequence[Any],
    *,
    target: str = "sm_80",
    grid: tuple[int, int, int] = (1, 1, 1),
    source: str | None = None,
    unknown: Note | None = None,
) -> list[Bounded | None]:
    """What every memory argument holds after the function has run; None for scalars.

    Returned tensors that are computed in the place of no argument take further arguments, in the
    order of the return, as `frag-bufferize` makes of them.

    `arguments` are arrays in their storage types (bf16 as uint16, 8-bit floats as uint8, tf32 as
    float32) or numbers; arrays are left as they are. `target` says whose tensor cores add.
    `source` is the program's text, for errors. Raises FragirError, with the place where there is
    one, for operations that have no meaning here and for accesses out of bounds.

    An operation that can be compiled but does not say what it means (a foreign one) may give
    anything: what depends on it has an infinite bound. `unknown` is called with each of them.
    """
    _check_function(function)
    parameters = function.body.block.args
    returned = _homeless(function)
    count = len(parameters) + len(returned)
    if len(arguments) != count:
        raise FragirError(f"{function.sym_name.data} takes {count} arguments, not {len(arguments)}")
    values = [_value(p.type, x) for p, x in zip([*parameters, *returned], arguments, strict=True)]
    inputs, results = values[: len(parameters)], values[len(parameters) :]
    memories = [x for x in results if isinstance(x, BoundedMemory)]
    Run(target, source, unknown).run_function(function, inputs, grid, memories)
    return [x.content if isinstance(x, BoundedMemory) else None for x in values]


def evaluate_elements(
    function: func.FuncOp,
    arguments: Sequence[Any],
    inputs: Sequence[Values | None],
    *,
    target: str = "sm_80",
    grid: tuple[int, int, int] = (1, 1, 1),
    source: str | None = None,
) -> list[tuple[Values, Array] | None]:
    """The same of elements of two finite fields: which functions of its inputs it computes.

    `inputs`: what memory arguments of floats are, in their shapes; None: what they hold. For every
    memory argument of floats what it is after the function has run, and where that is not known;
    None for others. Choices and comparisons are those of the numbers.
    """
    _check_function(function)
    parameters = function.body.block.args
    returned = _homeless(function)
    places = [*parameters, *returned]
    with algebra.exactly_followed() as rows:
        values = [_value(p.type, x) for p, x in zip(places, arguments, strict=True)]
        for value, known in zip(values, inputs, strict=True):
            if known is not None and isinstance(value, BoundedMemory):
                value.write(rows.bounded(known, np.zeros(known.shape, np.bool_), value.element))
        memories = [x for x in values[len(parameters) :] if isinstance(x, BoundedMemory)]
        Run(target, source).run_function(function, values[: len(parameters)], grid, memories)
        return [
            rows.look(x.content) if isinstance(x, BoundedMemory) and x.element in FLOATS else None
            for x in values
        ]


def _homeless(function: func.FuncOp) -> list[SSAValue]:
    """The returned tensors and memory that no argument is the place of."""
    end = function.body.block.last_op
    if not isinstance(end, func.ReturnOp):
        return []
    pairs = zip(end.arguments, places_of(end.arguments), strict=True)
    return [value for value, home in pairs if home is None]


def _value(type_: Attribute, argument: Any) -> Value:
    name = type_name(type_)
    if isinstance(type_, MemRefType | TensorType):
        return memory_of(decode(np.asarray(argument), name), name)
    if name in FLOATS:
        return exactly(round_to(np.asarray(float(argument)), FLOATS[name]))
    if name == PREDICATE:
        return exactly(np.asarray(bool(argument)))
    return exactly(INTEGERS[name].wrap(np.asarray(int(argument), np.int64)))


def _check_function(function: object) -> None:
    if not isinstance(function, func.FuncOp):
        raise FragirError(
            f"a func.FuncOp is evaluated, not {kind_of(function)}",
            hint="one of the operations of fragir.parse(text)",
        )


def outputs(function: func.FuncOp) -> list[int]:
    """The numbers of the arguments that the function writes, for others to read."""
    _check_function(function)
    roots: set[SSAValue] = set()
    for op in function.walk():
        roots |= {root_of(value) for value in _written_memory(op)}
    return [i for i, argument in enumerate(function.body.block.args) if argument in roots]


def _written_memory(op: Operation) -> Sequence[SSAValue]:
    if op.name == "frag.launch":
        from fragir.reference.control import kernel_of  # few programs need it

        return [op.operands[number] for number in outputs(kernel_of(op))]
    if isinstance(op, func.CallOp):
        from fragir.dialects.calls import callee_of

        return [op.operands[number] for number in outputs(callee_of(op))]
    accesses = accesses_of(op)
    if accesses is None:
        return ()
    scratch = accesses.scratch()
    return [value for value in accesses.writes() if value not in scratch]
