"""What a tile or a scalar of a program held in a run on the emulator, as a matrix.

    held = values(text, (a, b, c), "%acc@last")          # a tile of the placed level, by its name
    held = values(text, (a, b, c), "72:12@5")            # by its place in the program, fifth time
    held.matrix, held.slot(9, 3), held.disagreements

Names are those that `fragir compile --to placed` prints. `@5` is the fifth execution, `@last` the
last; `[1,0]` behind it another block than the first. The arrays stay as they are: a copy is run.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from fragir import compiler
from fragir.compilation.pipeline import Given
from fragir.compilation.program import choose_entry, keep_only, parse
from fragir.dialects.elements import element_bits, element_type
from fragir.errors import FragirError, check_kind
from fragir.explain.held import (
    Disagreement,
    HeldValue,
    ValueAsked,
    collect_matrix,
    decode_elements,
    each_slot,
    notes_of,
    parse_request,
    several,
    unpack_elements,
)
from fragir.explain.looks import LANES, Look, check_reached, looking, run_for
from fragir.explain.report import ValueShown
from fragir.explain.tile_registers import TileInPtx, TilesInPtx, tiles_in_ptx
from fragir.layout import Layout

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array
    from fragir.explain.looks import Words


def values(
    program: ModuleOp | str,
    arguments: Sequence[object],
    at: str | ValueAsked,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
    **options: Any,
) -> HeldValue:
    """What a tile or scalar held: `at` says which, at which execution, in which block.

    `program`, `target`, `entry` and `passes` are as of `fragir.compile`, `arguments` those of the
    kernel's call, which get `options`, too. FragirError where there is no such tile, where the
    program never came there, and for what is wrong with the program or the run.
    """
    kept = {"target": target, "entry": entry, "passes": passes, "filename": filename}
    (found,) = several_values(program, arguments, [at], **kept, **options)
    return found


def several_values(
    program: ModuleOp | str,
    arguments: Sequence[object],
    at: Sequence[str | ValueAsked],
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
    **options: Any,
) -> list[HeldValue]:
    """What several tiles or scalars held, of one run: as `values`."""
    check_kind(program, str | ModuleOp, "values takes the text of a program or a ModuleOp")
    wanted = [parse_request(one) for one in at]
    kernel = compiler.compile(
        program, target=target, entry=entry, passes=passes, filename=filename, alone=True
    )
    known = program_tiles(program, target=target, entry=entry, passes=passes, filename=filename)
    assert known.ptx == kernel.ptx, "PTX depends on who looks at it"
    tiles = [find_tile(known, one) for one in wanted]
    looks = [looks_of(tile, one) for tile, one in zip(tiles, wanted, strict=True)]
    flat = [look for each in looks for look in each if look is not None]
    hooks = looking(flat, stops=not kernel.is_program)
    copies = copy.deepcopy(list(arguments))
    ended = run_for(lambda: kernel(*copies, on="emulator", checks=[hooks], **options), flat)
    return [
        _held_value(tile, one, each, ended)
        for tile, one, each in zip(tiles, wanted, looks, strict=True)
    ]


def program_tiles(
    program: ModuleOp | str,
    *,
    target: str,
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
) -> TilesInPtx:
    """The tiles and scalars of a program's placed level, and the PTX that it compiles to."""
    text = program if isinstance(program, str) else None
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    keep_only(module, choose_entry(module, entry), text)
    return tiles_in_ptx(module, target, passes=passes, source=text)


# Which ------------------------------------------------------------------------------------------


def find_tile(known: TilesInPtx, wanted: ValueAsked) -> TileInPtx:
    """The tile or scalar that is meant; FragirError that lists those that there are."""
    if wanted.kernel is not None:
        kernels = dict.fromkeys(one.kernel for one in known.values)
        if wanted.kernel not in kernels:
            hint = f"there are {', '.join(kernels)}"
            raise FragirError(f"there is no kernel {wanted.kernel}", hint=hint)
        own = tuple(one for one in known.values if one.kernel == wanted.kernel)
        known = replace(known, values=own)
    if wanted.name is not None:
        found = [one for one in known.values if one.name == wanted.name]
    else:
        found = [one for one in known.values if _stands_at(one, wanted)]
        tiles = [one for one in found if one.shape]
        found = tiles or found
    if len(found) == 1:
        return found[0]
    if found and len({one.kernel for one in found}) > 1:
        kernels = ", ".join(dict.fromkeys(one.kernel for one in found))
        hint = f"write {found[0].kernel}:{wanted.where}"
        raise FragirError(f"{wanted.where} is in several kernels: {kernels}", hint=hint)
    if found:
        raise FragirError(f"at {wanted.where} are several", hint=f"name one: {_list(found)}")
    if wanted.name is not None:
        names = {one.name: one for one in known.values}
        near = difflib.get_close_matches(wanted.name, names, n=3)
        tiles = [names[name] for name in near] or [one for one in known.values if one.shape]
        raise FragirError(
            f"there is no %{wanted.name} among the placed tiles",
            hint=f"there are {_list(tiles)}; `fragir compile --to placed` prints them",
        )
    lines = sorted({one.place.line.data for one in known.values if one.place and one.shape})
    raise FragirError(
        f"no tile is made at {wanted.where}",
        hint=f"tiles are made in lines {', '.join(map(str, lines))}" if lines else None,
    )


def _stands_at(one: TileInPtx, wanted: ValueAsked) -> bool:
    place = one.place
    return (
        place is not None
        and place.line.data == wanted.line
        and wanted.col in (None, place.column.data)
    )


def _list(tiles: Sequence[TileInPtx], most: int = 12) -> str:
    names = [
        f"%{one.name} ({'x'.join(map(str, one.shape)) or 'a scalar'} {one.element})"
        for one in tiles[:most]
    ]
    return ", ".join(names) + (f" and {len(tiles) - most} more" if len(tiles) > most else "")


# What -------------------------------------------------------------------------------------------


def looks_of(tile: TileInPtx, wanted: ValueAsked) -> list[Look | None]:
    """A look for each fragment; None for one that is never formed, or stands in no line."""
    return [
        None
        if piece is None or not piece.line
        else Look(
            piece.line,
            tuple(dict.fromkeys(name for name in piece.registers if name.startswith("%"))),
            piece.after,
            tile.kernel,
            wanted.block,
            wanted.occurrence,
        )
        for piece in tile.pieces
    ]


def _held_value(
    tile: TileInPtx, wanted: ValueAsked, looks: Sequence[Look | None], ended: str
) -> HeldValue:
    """The tile or scalar of what was seen."""
    if not any(tile.pieces):
        raise FragirError(
            f"%{tile.name} has no registers: nothing uses it, or it is formed where it is used"
        )
    seen = [look for look in looks if look is not None]
    check_reached(f"%{tile.name}", wanted, seen)
    warps = max((len(look.reached) for look in seen), default=1)
    bits = 1 if tile.element == "pred" else element_bits(element_type(tile.element))
    count = 1 if tile.layout is None else tile.layout.size("element") // len(tile.pieces)
    codes, there = list["Array"](), list["Array"]()
    for piece, look in zip(tile.pieces, looks, strict=True):
        held = np.zeros((warps, LANES, count), np.bool_)
        part = np.zeros((warps, LANES, count), np.uint64)
        if piece is not None:
            words = [_word(name, look, warps) for name in piece.registers]
            part = unpack_elements(words, piece.width, bits)[..., :count]
            held[...] = True if look is None else look.reached[..., None]
        codes.append(part)
        there.append(held)
    found = _matrix(tile, wanted, np.concatenate(codes, -1), np.concatenate(there, -1))
    lines = [look.line for look in seen]
    notes = tuple(_notes(tile, seen, found, ended))
    times = max((int(look.times.max(initial=0)) for look in seen), default=0)
    return replace(found, ptx_line=min(lines, default=0), times=times, notes=notes)


def _matrix(tile: TileInPtx, wanted: ValueAsked, codes: Words, there: Array) -> HeldValue:
    shape, first = tile.shape, tile.first_warp
    if tile.layout is not None:
        bits, known, slots, said = collect_matrix(
            tile.layout, shape, tile.element, codes[first:], there[first:], first
        )
    else:
        bits, known, slots, said = collect_matrix(_ALIKE, (1,), tile.element, codes, there)
        bits, known, slots = bits[0], known[0], slots[0]
    layout = tile.layout
    if layout is None and said:  # a scalar of the lanes' own
        shape, said = there.shape[:2], list[Disagreement]()
        bits, known, layout = codes[..., 0], there[..., 0], None
        slots = each_slot(known)
    return HeldValue(
        name=f"%{tile.name}",
        element=tile.element,
        shape=shape,
        matrix=decode_elements(bits, tile.element),
        bits=bits,
        known=known,
        slots=slots,
        layout=layout,
        ptx_line=0,
        block=wanted.block,
        occurrence=wanted.occurrence,
        times=0,
        disagreements=tuple(said),
    )


_ALIKE = Layout.parse("warp [1:0] lane [1:0] element [1:0]")
"""All lanes hold the same one element."""


def _word(name: str, look: Look | None, warps: int) -> Words:
    """The bits of a register as it was seen, or of a literal."""
    if look is not None and name in look.words:
        return look.words[name]
    number = int(name[2:], 16) if name.startswith(("0f", "0d")) else int(name, 0)
    return np.full((warps, LANES), number & (1 << 64) - 1, np.uint64)


def _notes(tile: TileInPtx, looks: Sequence[Look], held: HeldValue, ended: str) -> Iterator[str]:
    """What else there is to say."""
    if under_way := {name for look in looks for name in look.under_way}:
        yield (
            f"a wgmma under way was still to write {several(sorted(under_way))}: what frag.await "
            "gives is complete"
        )
    unformed = sum(piece is None for piece in tile.pieces)
    yield from notes_of(held, f"{unformed} fragments are never formed" if unformed else "")
    if ended:
        yield f"the run ended with an error: {ended}"


# -- shown values ----------------------------------------------------------------------------------
# What was held in a run, as rows of texts for the page.


def shown_value(at: str, held: HeldValue) -> ValueShown:
    """A matrix of numbers with who held each: rows and columns are the last two dimensions, in
    front of which further ones go on downwards."""
    shape = held.shape if len(held.shape) > 1 else (1, *held.shape) if held.shape else (1, 1)
    width = shape[-1]
    numbers = held.matrix.reshape(-1, width).tolist()
    known = held.known.reshape(-1, width).tolist()
    slots = held.slots.reshape(-1, width, 3).tolist()
    rows = tuple(
        tuple(_text(number) if there else "" for number, there in zip(*line, strict=True))
        for line in zip(numbers, known, strict=True)
    )
    holders = tuple(
        tuple("" if warp < 0 else f"W{warp} T{lane}:{element}" for warp, lane, element in line)
        for line in slots
    )
    which = "the last time" if held.occurrence is None else f"time {held.occurrence}"
    block = ",".join(map(str, held.block))
    size = " x ".join(map(str, held.shape)) or "a value"
    return ValueShown(
        at,
        f"{held.name}: {size} of {held.element}",
        f"{which} of {held.times}, in block ({block}), at line {held.ptx_line} of the PTX",
        held.ptx_line,
        rows,
        holders,
        (*map(str, held.disagreements[:8]), *held.notes),
    )


def _text(number: float | int | bool) -> str:
    """As short as tells it from its neighbours: 6 digits."""
    return f"{number:.6g}" if isinstance(number, float) else str(int(number))
