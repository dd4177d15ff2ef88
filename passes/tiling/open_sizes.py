"""Schedules of products whose sizes, or groups of rows, only a launch knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.memory_layout import strides_of
from fragir.dialects.frag.tensor_copies import UNIT, contiguous
from fragir.dialects.interfaces import Names
from fragir.dialects.shorthands import memref_type
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    configuration_of,
    problem_of,
    search_limits,
    unmapped_rows,
    with_roles,
)
from fragir.passes.tiling.schedule import is_suitable
from fragir.scheduling.candidates import SPECIALISED, GemmProblem
from fragir.scheduling.choice import choose_for_several

SAMPLE = (64, 256, 1024, 8192, 4096)
"""What sizes are taken for that only a launch knows, all of them alike, or one of them `FEW` and
the others as large as the last: where a schedule is chosen, it is to gain there."""
ROWS = (16, 64, 256, 4096, 1024)
"""The same of the rows of a group."""
FEW = 64
GROUPS = 8
"""What their number is taken for where it is not known."""


class KnownRows(NamedTuple):
    """What is known of the rows of a product's operands."""

    staged: bool
    """Whether C can leave through shared memory."""
    unaligned: tuple[str, ...]
    """Sizes that would have to be multiples of 16 bytes for tensor maps to take the rows."""


def with_open_sizes(product: frag.MatmulOp, usual: Schedule) -> Schedule:
    """The usual schedule, or one with roles: where a tensor map takes the rows whatever a launch
    brings, since sizes say or promise so, and no size of a sample is dearer by it."""
    rows = known_rows(product, usual)
    if rows is None or rows.unaligned:
        return usual
    return cheapest(product, usual, rows.staged)


def cheapest(product: frag.MatmulOp, usual: Schedule, staged: bool) -> Schedule:
    """The cheapest schedule with roles, if tensor maps take the rows; or the usual one."""
    space = SPECIALISED._replace(
        staged=(staged,),
        clusters=(1,) if product.ends is not None else SPECIALISED.clusters,
        **search_limits(product, usual),
    )
    known, problems = configuration_of(usual), sample_problems(product, usual.target)
    if known.problem(problems[-1]) is not None:  # of which the model knows no cost
        return usual
    found = choose_for_several(problems, known, space=space)
    if found == known:
        return usual
    best = with_roles(found, usual)
    best = best._replace(tile=found.tile, warps=found.warps, stages=found.stages)
    return best if is_suitable(product, best) else usual


def known_rows(product: frag.MatmulOp, usual: Schedule) -> KnownRows | None:
    """What is known of rows; None where roles are not looked at: by mma.sync, with words that say
    something of roles, with sums in parts, of rows that are no multiples."""
    said = usual.roles or product.cluster is not None or product.consumers is not None
    if said or not usual.wgmma or product.in_parts:
        return None
    missing = missing_multiples(product)
    if None in missing or unmapped_rows(product) is not None:
        return None
    function = _function(product)
    assert function is not None
    staged = product.ends is None and not _Rows(function, product).missing(product.c)
    return KnownRows(staged, tuple(dict.fromkeys(name for name in missing if name is not None)))


def missing_multiples(product: frag.MatmulOp) -> tuple[str | None, ...]:
    """Sizes that would have to be multiples of 16 bytes for tensor maps to take the rows of A and
    B, None for what nothing can promise; empty where the rows are so."""
    function = _function(product)
    if function is None:
        return (None,)
    rows = _Rows(function, product)
    return (*rows.missing(product.a), *rows.missing(product.b))


def sample_problems(product: frag.MatmulOp, target: str) -> tuple[GemmProblem, ...]:
    """The sample as the cost model takes it."""
    first, *others = sample(product)
    known = problem_of(product, first[0], target)._replace(batch=first[1])
    rest = (known._replace(m=m, n=n, k=k, batch=count) for (m, n, k), count in others)
    return known, *rest


def sample(product: frag.MatmulOp) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Sizes that a launch may bring, and how many such products; the last is what it is for."""
    m, n, k = product.sizes()
    count = 1
    for size in product.batch():
        count *= size or 1
    steps = SAMPLE
    if product.ends is not None:  # M is of a group
        m, steps = None, ROWS
        groups = memref_type(product.ends.type).get_shape()[0]
        count = GROUPS if groups == DYNAMIC_INDEX else groups
    sizes = (m, n, k)
    if sum(size is None for size in sizes) > 1:
        for few in range(3):
            if sizes[few] is None:
                large = [steps[-1] if size is None else size for size in sizes]
                large[few] = FEW
                yield (large[0], large[1], large[2]), count
    for step in steps:
        yield (m or step, n or step, k or step), count


def _function(product: frag.MatmulOp) -> func.FuncOp | None:
    parent = product.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        parent = parent.parent_op()
    return parent


class _Rows:
    """What is known of where rows of a product's operands begin."""

    def __init__(self, function: func.FuncOp, product: frag.MatmulOp):
        self._arguments: list[SSAValue] = list(function.body.block.args)
        self._function = function
        self._promises = frag.promises_of(function)
        self._dimensions: dict[SSAValue, Names] = dict(product.dimensions())
        self._names: dict[str, str] = {}
        for value, dims in self._dimensions.items():
            if value in self._arguments and function.arg_attrs is not None:
                entry = function.arg_attrs.data[self._arguments.index(value)]
                given = frag.sizes_of(entry.data.get("frag.sizes"))
                for name, own in zip(dims, given, strict=False):
                    if name is not None:
                        self._names.setdefault(name, own)

    def missing(self, memory: SSAValue) -> tuple[str | None, ...]:
        """Sizes that are not known to be multiples of 16 bytes, as a tensor map's strides are; None
        for a stride that no promise says."""
        if memory not in self._arguments:
            return (None,)
        type_ = memref_type(memory.type)
        shape, strides, along = type_.get_shape(), strides_of(type_), contiguous(memory)
        bits = element_bits(type_.element_type)
        names = self._dimensions[memory]
        step, within = 1, list[str]()
        for dim in range(len(shape) - 1, -1, -1):
            if strides is not None:
                step, within = strides[dim], []
                if step == DYNAMIC_INDEX:
                    return (None,)
            if dim != along and shape[dim] != 1 and step * bits % (8 * UNIT):
                return tuple(within) or (None,)
            name = names[dim]
            if shape[dim] != DYNAMIC_INDEX:
                step *= shape[dim]
            elif name is None:
                return (None,)
            else:
                own = self._names.get(name, name)
                step *= self._promises.get(own, 1)
                within.append(own)
        return ()
