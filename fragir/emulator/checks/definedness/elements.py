"""Which elements of D depend on undefined elements of A, B and C, and on which operand's.

D[i, j] is undefined where an element of row i of A, of column j of B, or C[i, j] is: also where the
other factor is zero, for the undefined one may be an infinity. Of a sparse A the metadata says
which elements of B row i is multiplied with. A scale, and a row's metadata, counts as an element of
its row or column. Arrays hold ranks (`causes.py`), and the warps run along the last dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from fragir.emulator.checks.definedness.causes import DEFINED, numbers, ranks
from fragir.emulator.numbers.types import I64, U8
from fragir.emulator.tensor_cores.fragment import Fragment
from fragir.emulator.tensor_cores.mma import Mma, scale_lanes
from fragir.emulator.tensor_cores.sparse import Metadata
from fragir.emulator.tensor_cores.types import RegisterWords

#: The rank of an operand in every warp: asked, with the elements that have no older cause (any
#: dimensions, warps last), where there are such.
Root = Callable[[Any], U8]
_LAST = np.uint8(DEFINED)


def ranked(undefined: Any, older: U8 | None, root: Root) -> U8 | None:
    """The ranks of elements; None where all are defined. `older`: what they are made of."""
    if not undefined.any():
        return None
    known: Any = np.full(undefined.shape, _LAST) if older is None else older
    fresh: Any = undefined & (known == _LAST)
    found = np.where(undefined, known, _LAST)
    return np.where(fresh, root(fresh), found) if fresh.any() else found


def of_registers(
    fragment: Fragment, bits: RegisterWords, causes: RegisterWords | None, root: Root
) -> U8 | None:
    """A matrix in registers `[count, W, lanes]`: `[*extents, W]`."""
    if not bits.any():
        return None
    older = None
    if causes is not None:
        words = ranks(causes).transpose(0, 2, 1).reshape(-1, bits.shape[1])
        older = words[fragment.word].reshape(*fragment.extents, -1)
    return ranked(fragment.load(bits) != 0, older, root)


def of_metadata(
    metadata: Metadata, selector: int, bits: RegisterWords, causes: RegisterWords | None, root: Root
) -> U8 | None:
    """The rows of a sparse A by their metadata, a register `[1, W, lanes]`: `[m, W]`."""
    lane, nibble = metadata.place(selector)
    undefined = bits[0][:, lane] >> (4 * nibble).astype(np.uint32) & np.uint32(0xF) != 0
    older = None if causes is None else ranks(causes[0])[:, lane].transpose(2, 1, 0)
    found = ranked(undefined.transpose(2, 1, 0), older, root)
    return None if found is None else found.min(axis=0)


def of_scales(
    op: Mma,
    select: tuple[int, int],
    bits: RegisterWords,
    causes: RegisterWords | None,
    root: Root,
    *,
    rows: bool,
) -> U8 | None:
    """Rows of A or columns of B by their scales, a register `[1, W, 32]`: `[m or n, W]`."""
    op.check_scales(select, rows=rows)
    byte, thread = select
    lanes = scale_lanes(thread, rows=rows)
    read = np.uint32((1 << 8 * op.plan.scale_blocks) - 1)
    undefined = (bits[0][:, lanes] >> np.uint32(8 * byte) & read != 0).T
    older = None if causes is None else ranks(causes[0])[:, lanes].T
    return ranked(undefined, older, root)


def as_registers(fragment: Fragment, found: U8) -> tuple[RegisterWords, RegisterWords]:
    """A matrix `[*extents, W]` as undefined bits and as causes of registers `[count, W, lanes]`."""
    dtype = np.uint64 if fragment.width == 64 else np.uint32
    bits = fragment.store(np.where(found != _LAST, dtype(fragment.mask), dtype(0)))
    flat = found.reshape(-1, found.shape[-1])
    least = np.minimum.reduce([flat[part] for part in fragment.parts])
    words = least.reshape(fragment.count, fragment.lanes, -1).transpose(0, 2, 1)
    return bits, numbers(words, dtype)


def product(
    extents: tuple[int, ...],
    a: U8 | None,
    b: U8 | None,
    c: U8 | None,
    *,
    rows: U8 | None = None,
    columns: U8 | None = None,
    kept: I64 | None = None,
) -> U8 | None:
    """D `[(product,) m, n, W]`; None where all is defined.

    `a`: `[k, (product,) m, W]`, `b`: `[k, (product,) n, W]`, `c`: like D; `rows`, `columns`: what
    else they depend on; `kept`: the row of B that every element of a sparse A `[K/2, m, W]` meets.
    """
    parts: list[Any] = [] if c is None else [c]
    for along_rows in (None if a is None else a.min(axis=0), rows):
        if along_rows is not None:
            parts.append(along_rows[..., None, :])
    if b is not None and kept is not None:
        met = (np.take_along_axis(b, which[:, None, :], axis=0) for which in kept)
        parts.append(reduce(np.minimum, met))
    elif b is not None:
        parts.append(b.min(axis=0)[..., None, :, :])
    if columns is not None:
        parts.append(columns[None])
    if not parts:
        return None
    warps = parts[0].shape[-1]
    found = np.full((*extents, warps), _LAST)
    for part in parts:
        np.minimum(found, part, out=found)
    return found
