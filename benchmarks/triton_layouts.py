"""Whether Triton's encodings mean here what they mean in Triton: its own bases beside ours.

    python benchmarks/triton_layouts.py [--count N] [--seed S] [--update FILE.json]

Random encodings go to Triton (an environment of its own, `benchmarks/neighbours.py`), which prints
each as text and says its bases; fragir reads the text. Any difference is printed, and the exit code
is 1. `--update` keeps a sample as what the tests hold the reader to.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neighbours import TRITON, Neighbour, Worker

from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.distribution import dims_of
from fragir.layout.texts.bases import from_bases
from fragir.layout.texts.ttg import from_ttg

LAYOUTS = Neighbour("Triton", TRITON.requirements, "triton_layouts_worker.py")
Case = dict[str, Any]


def _power(rng: random.Random, low: int, high: int) -> int:
    return 1 << rng.randint(low, high)


def _split(rng: random.Random, total: int, parts: int) -> list[int]:
    """Powers of two with this product."""
    sizes = [1] * parts
    while total > 1:
        sizes[rng.randrange(parts)] *= 2
        total //= 2
    return sizes


def _order(rng: random.Random, rank: int) -> list[int]:
    return rng.sample(range(rank), rank)


def _blocks(rng: random.Random, rank: int) -> list[list[int]]:
    """How the blocks of a cluster tile the tensor: usually there is one."""
    if rng.random() < 0.7:
        return []
    bases: list[list[int]] = []
    extent = [1] * rank
    for _ in range(rng.randint(1, 2)):
        dim = rng.randrange(-1, rank)
        bases.append([extent[dim] if d == dim else 0 for d in range(rank)])
        if dim >= 0:
            extent[dim] *= 2
    return bases


def blocked(rng: random.Random, rank: int) -> list[Any]:
    sizes = [_power(rng, 0, 3) for _ in range(rank)]
    lanes, warps = _split(rng, 32, rank), _split(rng, _power(rng, 0, 3), rank)
    return ["blocked", [sizes, lanes, warps, _order(rng, rank), _blocks(rng, rank)]]


def mma(rng: random.Random, rank: int) -> list[Any]:
    if rank == 2 and rng.random() < 0.4:
        warps = [4 * _power(rng, 0, 1), _power(rng, 0, 1)]
        shape = [16, _power(rng, 3, 8), rng.choice((8, 16, 32))]
        return ["nvidia_mma", [[3, 0], warps, shape, _blocks(rng, 2)]]
    shape = [1] * (rank - 2) + rng.choice(([16, 8], [16, 8], [8, 8]))
    warps = _split(rng, _power(rng, 0, 3), rank)
    return ["nvidia_mma", [[2, 0], warps, shape, _blocks(rng, rank)]]


def dot_operand(rng: random.Random, rank: int) -> list[Any]:
    if rng.random() < 0.25:
        return ["dot_op", [rng.randrange(2), blocked(rng, rank), 0]]
    parent = mma(rng, rank)
    hopper = parent[1][0][0] == 3
    return ["dot_op", [0 if hopper else rng.randrange(2), parent, _power(rng, 0, 3)]]


def linear(rng: random.Random, shape: list[int]) -> list[Any]:
    """Bases of a tensor, some of them mixed; every element is held."""
    rank = len(shape)
    points = [
        [1 << bit if d == dim else 0 for d in range(rank)]
        for dim in range(rank)
        for bit in range(shape[dim].bit_length() - 1)
    ]
    rng.shuffle(points)
    for _ in range(rng.choice((0, 0, 2, 5))):
        if len(points) > 1:
            a, b = rng.sample(range(len(points)), 2)
            points[a] = [x ^ y for x, y in zip(points[a], points[b], strict=True)]
    warps = [points.pop() for _ in range(min(len(points), rng.randint(0, 3)))]
    lanes = [points.pop() if points else [0] * rank for _ in range(5)]
    return ["linear", [points, lanes, warps, [], shape]]


def distributed(rng: random.Random) -> Case:
    rank = rng.choice((1, 2, 2, 2, 2, 3))
    shape = [_power(rng, 0, 8 if rank < 3 else 5) for _ in range(rank)]
    kind = rng.choice(("blocked", "mma", "dot_op", "slice", "linear"))
    made: list[Any]
    if kind == "slice":
        parent = rng.choice((blocked, blocked, mma, dot_operand))(rng, min(rank, 2) + 1)
        shape = shape[: min(rank, 2)]
        made = ["slice", [rng.randrange(len(shape) + 1), parent]]
    elif kind == "linear":
        made = linear(rng, shape)
        shape = [max(1, n * rng.choice((1, 1, 1, 2, 4))) for n in shape]
    elif kind == "blocked" or rank == 1:
        made = blocked(rng, rank)
    else:
        made = (mma if kind == "mma" else dot_operand)(rng, rank)
    return {"encoding": made, "shape": shape, "bits": 16}


def memory(rng: random.Random) -> Case:
    rank = rng.choice((2, 2, 2, 3))
    shape = [_power(rng, 3, 9 if rank == 2 else 5) for _ in range(rank)]
    bits = rng.choice((8, 16, 32))
    if rng.random() < 0.5:
        fields = [_power(rng, 0, 4), _power(rng, 0, 3), _power(rng, 0, 4), _order(rng, rank)]
        made = ["swizzled_shared", fields]
    else:
        width, turned = rng.choice((0, 32, 64, 128)), rank == 2 and rng.random() < 0.5
        fast = 0 if turned else rank - 1
        shape[fast] = max(shape[fast], width * 8 // bits)
        made = ["nvmma_shared", [width, bits, rank, turned]]
    # Split where the encoding has no name afterwards: along its fastest dimension.
    dim = (0 if made[1][-1] else rank - 1) if made[0] == "nvmma_shared" else rng.randrange(rank)
    split = [*shape[:dim], 2, shape[dim] // 2, *shape[dim + 1 :]]
    return {"encoding": made, "shape": shape, "bits": bits, "split": split, "at": dim}


def differs(case: Case, answer: Case) -> str | None:
    """How our reading of Triton's text differs from Triton's bases; None where it does not."""
    shape = tuple(case["shape"])
    try:
        ours = from_ttg(answer["type"])
    except FragirError as error:
        return f"refused: {error.sentence}"
    assert isinstance(ours, Layout)
    bases = answer["bases"]
    if "offset" in bases:
        for bit, point in enumerate(bases["offset"]):
            dim = case["at"]
            inner = case["split"][dim + 1]
            whole = [*point[:dim], point[dim] * inner + point[dim + 1], *point[dim + 2 :]]
            found = ours(**dict(zip(dims_of(len(shape)), whole, strict=True)))
            if found != (1 << bit,):
                return f"place {1 << bit} is {whole} in Triton, which stands at {found} here"
        return None
    names = {"register": "element", "lane": "lane", "warp": "warp", "block": "block"}
    axes = [(names[name], [tuple(p) for p in points]) for name, points in bases.items()]
    theirs = from_bases(axes, dims_of(len(shape)))
    return None if ours.equivalent(theirs) else f"{theirs} in Triton, {ours.simplified()} here"


def main() -> int:
    parser = argparse.ArgumentParser(description="Triton's encodings read by fragir")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--update", type=Path)
    arguments = parser.parse_args()
    command = LAYOUTS.command()
    if command is None:
        return 1
    makers: list[Callable[[random.Random], Case]] = [distributed, distributed, memory]
    kept: list[Case] = []
    wrong = refused = compared = 0
    worker = Worker(command)
    for number in range(arguments.count):
        rng = random.Random(f"{arguments.seed}/{number}")
        case = rng.choice(makers)(rng)
        try:
            answer = worker.ask(case)
        except RuntimeError as error:  # Triton stops the process where an encoding is illegal
            refused += 1
            worker = Worker(command)
            if "--verbose" in sys.argv:
                print(case, error)
            continue
        compared += 1
        found = differs(case, answer)
        if found is not None:
            wrong += 1
            print(f"{answer['type']}\n  {found}")
        elif len(kept) < 200:
            kept.append({"type": answer["type"], "bases": answer["bases"], **_places(case)})
    print(f"{compared} encodings alike but {wrong}; {refused} that Triton itself refuses")
    if arguments.update is not None:
        note = "made by benchmarks/triton_layouts.py: Triton 3.6.0's own bases of its encodings"
        document = {"source": note, "cases": kept}
        arguments.update.write_text(json.dumps(document) + "\n")
    return 1 if wrong else 0


def _places(case: Case) -> Case:
    return {key: case[key] for key in ("shape", "split", "at") if key in case}


if __name__ == "__main__":
    sys.exit(main())
