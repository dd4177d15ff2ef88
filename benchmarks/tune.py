"""Tries schedules of products on a GPU, and keeps the order in which they come.

    python benchmarks/tune.py [--only PATTERN] [--results results] [--minutes N]

All candidates take turns for a few rounds; the better third of them for more. What spills, is made
serial by ptxas, or computes something wrong is left out, with the reason. `benchmarks/gemm.py`
measures the best beside what fragir chooses by itself.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from device import measured, median
from gemm import (
    LEFT,
    ROOT,
    Buffers,
    Contender,
    alive,
    fragir_contender,
    machine,
    save,
    slug,
    target_of_gpu,
)
from gemm_cases import Case, cases, program

import fragir
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.tiling.mapped import unmapped
from fragir.passes.tiling.modelled import problem_of
from fragir.scheduling.candidates import (
    FRAG_TILE,
    SPECIALISED,
    Configuration,
    configurations,
    in_parts,
)
from fragir.scheduling.choice import Ranked, rank
from fragir.toolchain import driver

FEW, MORE = 6, 20


WITH_ROLES, IN_PARTS = 12, 8
"""Of each kind that the cost model puts first."""
WORTH = 1.3
"""By how much sums in parts may cost more than the cheapest schedule, and be tried."""


def candidates(case: Case, target: str) -> list[str]:
    """Attributes of `frag.matmul` to try; the first, none, is what fragir chooses. Tiles without
    roles, the cheapest with roles, clusters and so on by the cost model, and with sums in parts."""
    bytes_of_element = {"bf16": 2, "f16": 2, "tf32": 4, "e4m3": 1}[case.type]
    depth = 128 // bytes_of_element  # a row of 128 bytes, as swizzled copies like it
    wgmma = target == "sm_90a"
    tiles = [(128, 256), (256, 128), (128, 192), (192, 128), (128, 128), (64, 256), (64, 128)]
    tiles += [(256, 64), (64, 64)] if wgmma else [(128, 64), (64, 64)]
    found = [""]
    for m, n in tiles:
        for k in (depth,) if wgmma else (depth, depth // 2):
            for stages in (3, 4) if wgmma else (2, 3, 4):
                found.append(f"tile = array<i64: {m}, {n}, {k}>, stages = {stages} : i64")
    text = program(case)
    product = next(op for op in fragir.parse(text).walk() if isinstance(op, frag.MatmulOp))
    problem = problem_of(product, (case.m, case.n, case.k), target)
    spaces = [FRAG_TILE]
    if unmapped(product, target) is None and problem.wgmma:
        spaces.append(SPECIALISED)
    whole = [one for space in spaces for one in rank(problem, space=space)]
    parts = [space._replace(parts=in_parts(16)) for space in spaces]
    cut = rank(problem, [one for space in parts for one in configurations(problem, space)])
    least = min(one.estimate.cycles for one in whole)
    cut = [one for one in cut if one.estimate.cycles < WORTH * least]
    roles = [one for one in whole if one.candidate.roles != "together"]
    found += _first_of_kind(roles, WITH_ROLES) + _first_of_kind(cut, IN_PARTS)
    return list(dict.fromkeys(found))


def _first_of_kind(ranked: Sequence[Ranked], count: int) -> list[str]:
    """The cheapest of each tile, roles, cluster and parts; the others differ in stages."""
    kinds: dict[tuple[object, ...], str] = {}
    for one, _ in ranked:
        kind = one.tile, one.warps, one.roles, one.cluster, one.even or one.parts
        kinds.setdefault(kind, attributes_of(one))
    return list(kinds.values())[:count]


def attributes_of(one: Configuration) -> str:
    """A schedule as attributes of `frag.matmul`."""
    words = [
        f"tile = array<i64: {', '.join(map(str, one.tile))}>",
        f"warps = array<i64: {', '.join(map(str, one.warps))}>",
        f"stages = {one.stages} : i64",
        *(["roles"] if one.roles != "together" else []),
        *(["consumers = 2 : i64"] if one.roles == "ping-pong" else []),
        *([f"cluster = {one.cluster} : i64"] if one.cluster > 1 else []),
        *([f"{'stream_k' if one.even else 'split_k'} = {one.parts} : i64"] * (one.parts > 1)),
    ]
    return ", ".join(words)


def tune(
    case: Case,
    say: Callable[[str], None],
    end: float | None = None,
    tried: Sequence[str] | None = None,
) -> dict[str, Any] | None:
    """The row of a case: attributes by their medians, and what was left out. None out of time."""
    buffers, target = Buffers.of(case), target_of_gpu()
    made: list[Contender] = []
    ready: dict[str, Contender] = {}
    left_out: dict[str, str] = {}
    try:
        for attributes in candidates(case, target) if tried is None else tried:
            if end is not None and time.monotonic() > end:
                return None
            try:
                found = fragir_contender(buffers, target, attributes, attributes)
                made.append(found)
                problem = "; ".join(found.facts["notes"]) or buffers.wrong(found)
            except FragirError as error:
                problem, found = str(error), None
            if problem or found is None:
                left_out[attributes] = " ".join(problem.split())[:300]
            else:
                ready[attributes] = found
        if not alive():
            return {"ranking": [], "left_out": left_out}
        starts = {name: one.start for name, one in ready.items()}
        first = {name: median(values).median for name, values in measured(starts, FEW).items()}
        best = sorted(first, key=first.__getitem__)[: max(3, len(first) // 3)]
        kept = dict.fromkeys(best + [""] * ("" in ready))
        times = measured({name: starts[name] for name in kept}, MORE)
    finally:
        if alive():
            for one in made:
                one.free()
            buffers.free()
    order = sorted(times, key=lambda name: median(times[name]).median)
    ranking = [
        {
            "attributes": name,
            "ms": list(median(times[name])),
            "tflops": case.flops / median(times[name]).median / 1e9,
            "ptx_sha256": ready[name].facts["ptx_sha256"],
            "registers": ready[name].facts["registers"],
        }
        for name in order
    ]
    if ranking:
        say(f"{case.key}: {ranking[0]['tflops']:.1f} TFLOP/s by {order[0] or 'the own choice'}")
    return {"ranking": ranking, "first_rounds": first, "left_out": left_out}


def run(
    chosen: Sequence[Case],
    folder: Path,
    *,
    seconds: float | None = None,
    again: bool = False,
    tried: Sequence[str] | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Tunes cases, each kept in `folder/GPU/tuning.json`; whether all are done."""
    facts, end = machine(), None if seconds is None else time.monotonic() + seconds
    path = folder / slug(facts) / "tuning.json"
    rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for case in chosen:
        if not again and rows.get(case.key, {}).get("machine") == facts:
            say(f"{case.key}: kept")
            continue
        over = end is not None and time.monotonic() > end
        row = None if over else tune(case, say, end, tried)
        if row is None:
            say("time is over; the next call goes on")
            return False
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        rows[case.key] = {"machine": facts, "date": date, **row}
        save(path, rows)
        if not alive():
            say("a kernel has ended the context of the GPU: start again for the rest")
            return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="as in 'bf16 8192*'")
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="FOLDER")
    parser.add_argument("--minutes", type=float, metavar="N", help="start nothing after so long")
    parser.add_argument("--again", action="store_true", help="tune what is there already too")
    options = parser.parse_args(argv)
    if (reason := driver.available()) is not None:
        print(f"nothing is tuned: {reason}", file=sys.stderr)
        return 1
    chosen = [one for one in cases() if fnmatch.fnmatch(one.key, options.only)]
    seconds = None if options.minutes is None else 60 * options.minutes
    done = run(chosen, options.results, seconds=seconds, again=options.again)
    return 0 if done else LEFT


if __name__ == "__main__":
    sys.exit(main())
