"""Programs of words, run lane by lane: what their outputs are for given inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fragir.layout.modes import WARP
from fragir.layout.planning.program import (
    Lanewise,
    Permute,
    Select,
    Shuffle,
    WordProgram,
)

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray


def simulate(program: WordProgram, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The outputs of a program in every thread.

    `words` has the axes input, [anything,] thread (warp * 32 + lane); so has the result, with
    outputs for inputs.
    """
    import numpy as np

    threads = words.shape[-1]
    made: list[NDArray[np.uint32]] = list(words)
    for step in program.steps:
        if isinstance(step, Permute):
            selector = numbers(step.selector, threads)
            both = [made[word] >> 8 * byte & 255 for word in (step.a, step.b) for byte in range(4)]
            stacked = np.stack(both)
            result = np.zeros_like(made[step.a])
            for byte in range(4):
                nibble = selector >> 4 * byte & 15
                if (nibble > 7).any():
                    raise ValueError("A selector has the bit that repeats the sign.")
                chosen = np.zeros_like(result)
                for value in range(8):
                    chosen = np.where(nibble == value, stacked[value], chosen)
                result |= chosen << 8 * byte
        elif isinstance(step, Select):
            result = np.where(
                numbers(step.number, threads) == step.value, made[step.b], made[step.a]
            )
        elif isinstance(step, Shuffle):
            result = made[step.a][..., _senders(step, threads)]
        else:
            result = _transpose_word(made[step.a])
        made.append(result)
    return np.stack([made[output] for output in program.outputs])


def numbers(number: Lanewise, threads: int) -> NDArray[np.int64]:
    """The number of every thread."""
    import numpy as np

    return np.array([number(thread % WARP, thread // WARP) for thread in range(threads)])


def _senders(step: Shuffle, threads: int) -> NDArray[np.int64]:
    import numpy as np

    lanes = numbers(step.lane, threads)
    own = np.arange(threads)
    if ((lanes < 0) | (lanes >= WARP)).any():
        raise ValueError("A shuffle reads a lane that a warp does not have.")
    if step.flip is not None and (lanes != own % WARP ^ step.flip).any():
        raise ValueError("A butterfly does not read the lanes that it says.")
    return own // WARP * WARP + lanes


def _transpose_word(word: NDArray[Any]) -> NDArray[Any]:
    """movmatrix.trans: row i of 8 halves lies in lanes 4 i to 4 i + 3, two in each."""
    import numpy as np

    shape = word.shape
    halves = np.stack([word & 0xFFFF, word >> 16], axis=-1)
    square = halves.reshape(*shape[:-1], shape[-1] // WARP, 8, 8)
    turned = np.swapaxes(square, -1, -2).reshape(*shape, 2)
    return turned[..., 0] | turned[..., 1] << 16


def words_of_points(points: Sequence[Sequence[int]], bits: int) -> NDArray[np.uint32]:
    """Words whose elements are the parts of `bits` bits of points: [word, part, thread].

    `points[thread][element]`; -1 is nothing. Parts are as many as the largest point needs.
    """
    import numpy as np

    table = np.array(points, dtype=np.int64).T
    parts = max(1, -(-int(table.max(initial=0)).bit_length() // bits))
    return _pack_words(np.stack([table >> part * bits for part in range(parts)], axis=1), bits)


def _pack_words(values: NDArray[np.int64], bits: int) -> NDArray[np.uint32]:
    """[element, ..., thread] of values as words."""
    import numpy as np

    values = values & (1 << min(bits, 62)) - 1
    if bits == 64:
        halves = np.stack([values & 0xFFFFFFFF, values >> 32], axis=1)
        return halves.reshape(-1, *values.shape[1:]).astype(np.uint32)
    per = 32 // bits
    missing = -len(values) % per
    values = np.concatenate([values, np.zeros((missing, *values.shape[1:]), np.int64)])
    words = np.zeros((len(values) // per, *values.shape[1:]), np.int64)
    for place in range(per):
        words |= values[place::per] << place * bits
    return words.astype(np.uint32)


def elements_of_words(words: NDArray[np.uint32], bits: int) -> NDArray[np.int64]:
    """The elements of words, as `words_of_points` put them there: [element, part, thread]."""
    import numpy as np

    wide = words.astype(np.int64)
    if bits == 64:
        return wide[0::2] | wide[1::2] << 32
    per = 32 // bits
    parts = [wide >> place * bits & (1 << bits) - 1 for place in range(per)]
    return np.stack(parts, axis=1).reshape(-1, *words.shape[1:])
