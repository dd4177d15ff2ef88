"""What the order of tiles makes a product read through L2."""

from __future__ import annotations


def best_group(rows: int, columns: int, running: int) -> int:
    """Rows of tiles of a group for which the tiles that run at once read the least of A and B.

    `running` tiles of `rows` x `columns` elements, in groups of G: they need G parts of A and
    ceil(running / G) of B. Powers of two, of which sizes are multiples more often than of others:
    the last group is then a whole one.
    """
    sizes = [1 << exponent for exponent in range(max(1, running).bit_length())]
    return min(sizes, key=lambda group: (group * rows + -(-running // group) * columns, group))
