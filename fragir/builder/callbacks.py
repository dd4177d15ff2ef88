"""Functions of scalars that a user gives: `k.map`, an epilogue, `k.reduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from fragir.builder.places import fail
from fragir.builder.values import Recorder, Scalar


def call(trace: Recorder, function: Callable[..., object], arguments: Sequence[SSAValue]) -> object:
    """What the function returns for these scalars; an error where it does not take so many."""
    try:
        return function(*(Scalar(trace, argument) for argument in arguments))
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        fail(f"the function is called with {len(arguments)} scalars: {error}")
