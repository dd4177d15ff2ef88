"""The meaning of random bits: Philox 4x32-10, exact."""

from __future__ import annotations

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.generated import PHILOX, WORDS
from fragir.reference.bounded import Bounded
from fragir.reference.formats import INTEGERS, Array
from fragir.reference.run import Run

_LOW = (1 << 32) - 1


def random(run: Run, op: frag.RandomOp) -> None:
    seed, words = run[op.seed], [run[word] for word in op.words()]
    bits = philox([word.value for word in words], int(seed.value))
    uncertain = sum((word.bound for word in words), np.full(op.first.type.shape, seed.bound))
    bound = np.where(uncertain > 0, np.inf, 0.0)
    for result, word in zip(op.results, bits, strict=True):
        run[result] = Bounded(INTEGERS["s32"].wrapped(word.astype(np.int64)), bound)


def philox(counter: list[Array], seed: int) -> list[Array]:
    """The four words of a counter's bits, as uint64; words of the counter left out are zero.

    Section 3.4 of the paper that `fragir.dialects.frag.generated` names.
    """
    low = np.uint64(_LOW)
    c = [np.asarray(word).astype(np.int64).view(np.uint64) & low for word in counter]
    c += [np.zeros_like(c[0])] * (WORDS - len(c))
    key = [seed & _LOW, seed >> 32 & _LOW]
    for _ in range(PHILOX.rounds):
        products = [c[at] * np.uint64(factor) for at, factor in zip((0, 2), PHILOX.factors)]
        (high0, low0), (high2, low2) = ((p >> np.uint64(32), p & low) for p in products)
        c = [high2 ^ c[1] ^ np.uint64(key[0]), low2, high0 ^ c[3] ^ np.uint64(key[1]), low0]
        key = [(k + step) & _LOW for k, step in zip(key, PHILOX.steps, strict=True)]
    return c
