"""Builds `frag.lanes` from a function of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from xdsl.ir import Attribute, Block, Region, SSAValue

from fragir.builder.elementwise import require_tile
from fragir.builder.lane import Lane, LaneRegisters
from fragir.builder.places import by, fail, items, place, require_shape, target
from fragir.builder.tiles import placement_of
from fragir.builder.trace import Trace
from fragir.builder.types import index, type_name
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag
from fragir.dialects.frag.lanes import HeldTile
from fragir.errors import FragirError


class _Expected(NamedTuple):
    """A tile that the function is to give."""

    shape: tuple[int, ...]
    layout: frag.LayoutAttr


def lane_code(
    trace: Trace,
    function: Callable[..., object],
    tiles: Sequence[Tile],
    layouts: object,
    results: object,
) -> Any:
    """The new tiles: none, one, or a tuple of them."""
    location, name = place(), target()
    sources = [require_tile(trace, tile) for tile in tiles]
    held = [
        HeldTile(frag.tile_of(source), layout)
        for source, layout in zip(sources, _layouts(sources, layouts), strict=True)
    ]
    expected = _expected_results(held, results)
    block = Block(arg_types=[index, index, *map(_registers, held)])
    for argument, hint in zip(block.args, ("lane", "warp", *_names(sources)), strict=True):
        argument.name_hint = hint
    trace.open("lane-level code", block)
    try:
        given = [
            LaneRegisters(trace, argument, number, len(own.type.shape))
            for number, (argument, own) in enumerate(zip(block.args[2:], held, strict=True))
        ]
        numbers = [Scalar(trace, argument) for argument in block.args[:2]]
        ranks = [len(own.shape) for own in expected] or [len(h.type.shape) for h in held[:1]]
        lane = Lane(trace, numbers[0], numbers[1], ranks)
        values = _returned_registers(lane, function(lane, *given))
        if results is None and values:
            if not held:
                fail("the shape and layout of the result are not known", "give results=")
            expected = [_Expected(held[0].type.shape, held[0].layout)] * len(values)
        outputs = _outputs(values, expected)
        trace.insert(frag.YieldOp(*(value.ssa for value in values)), location=location)
    finally:
        trace.close()
    op = frag.LanesOp(
        sources,
        [*(own.layout for own in held), *(own.layout for own in expected)],
        Region(block),
        outputs,
    )
    found = [trace.wrap(output) for output in trace.insert(op, name, location).outputs]
    return found[0] if len(found) == 1 else tuple(found) or None


def _names(sources: Sequence[SSAValue]) -> list[str | None]:
    return [source.name_hint for source in sources]


def _layouts(sources: Sequence[SSAValue], layouts: object) -> list[frag.LayoutAttr]:
    # a fragment is a tuple, too
    several = None if placement_of(layouts) is not None else items(layouts)
    if several is None:
        several = [layouts] * len(sources)
    if len(several) != len(sources):
        fail(f"{len(several)} layouts are given for {len(sources)} tiles")
    found: list[frag.LayoutAttr] = []
    for source, layout in zip(sources, several, strict=True):
        known = frag.tile_of(source).placement if layout is None else placement_of(layout)
        if known is None:
            fail(
                "the layout in which lanes hold the tile is not given",
                'write layouts=fragir.fragment("m16n8k16.f16", "c"), or a fragir.layout.Layout',
            )
        found.append(known)
    return found


def _registers(held: HeldTile) -> Attribute:
    try:
        return held.registers
    except FragirError as error:
        fail(error.message, error.hint)


def _expected_results(held: Sequence[HeldTile], results: object) -> list[_Expected]:
    if results is None:
        return []
    given = items(results) or []
    if len(given) == 2 and all(isinstance(n, int) for n in items(given[0]) or [None]):
        given = [results]  # one alone
    found: list[_Expected] = []
    for result in given:
        parts = items(result)
        if parts is None or len(parts) != 2:
            fail(f"{result!r} is no result", "write results=(shape, layout), or a list of such")
        layout = placement_of(parts[1])
        if layout is None:
            fail(f"{parts[1]!r} is no layout", 'as in fragir.fragment("m16n8k16.f16", "c")')
        found.append(_Expected(tuple(require_shape(parts[0])), layout))
    return found


def _returned_registers(lane: Lane, value: object) -> list[LaneRegisters]:
    """What the function gives, a tile each."""
    if value is None:
        return []
    several = items(cast("object", value)) or [] if isinstance(value, tuple) else [value]
    return [
        one if isinstance(one, LaneRegisters) else _packed_registers(lane, one) for one in several
    ]


def _packed_registers(lane: Lane, given: object) -> LaneRegisters:
    scalars = items([given] if isinstance(given, Scalar) else given)
    if not scalars or not all(isinstance(x, Scalar | int | float) for x in scalars):
        fail(
            f"the function returns {given!r}",
            "it must return registers or a list of scalars, a tuple of such, or None",
        )
    return lane.pack([x for x in scalars if isinstance(x, Scalar | int | float)])


def _outputs(values: Sequence[LaneRegisters], expected: Sequence[_Expected]) -> list[frag.TileType]:
    if len(values) != len(expected):
        fail(f"the function returns {len(values)} tiles, `results` has {len(expected)}")
    outputs: list[frag.TileType] = []
    for number, (value, own) in enumerate(zip(values, expected, strict=True)):
        try:
            type_ = frag.TileType(own.shape, value.element)
            held = HeldTile(type_, own.layout)
            count = held.registers.get_shape()[0]
        except FragirError as error:
            fail(error.message, error.hint)
        if len(value) != count:
            fail(
                f"the function returns {len(value)} elements of tile {number}; a lane has {count} "
                f"of {by(own.shape)} {type_name(value.element)}"
            )
        outputs.append(type_)
    return outputs
