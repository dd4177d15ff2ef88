"""What conversions between register layouts cost: cycles, beside Triton's.

The kernels are those whose instructions conversions.py counts, with a loop around the conversion:
what has been converted is converted again, as if it were in the source layout, so each waits for
the one before. Every word is exclusive-ored with a number before, which also brings it back into
the register where it is wanted; loops into which ptxas puts moves for that nevertheless are left
out. `nothing` is the loop with these alone: what a conversion costs is what its loop takes beyond
that. Loads stand before the loop, stores behind it; what is stored must be what numpy has after as
many permutations.

`cycles` are those of an SM for a turn of the loop where it has 16 warps: from the start of its
first block to the end of its last, by the SM's own clock, divided by all turns there. `alone` is
one block on an empty GPU: the time until the next conversion can begin.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu.contest import Contender, contest, on_gpu
from benchmarks.gpu.device import DeviceArray, median
from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.errors import FragirError
from fragir.toolchain import driver

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

Array = np.ndarray[Any, np.dtype[Any]]
OF_A_WIDTH = 7
"""Conversions for elements of 8, 16 and 32 bits each, at most."""
ROUNDS, SMALL_ROUNDS = 1000, 3
"""Conversions one after the other."""
SMS, WARPS, SMALL_BLOCKS = 132, 16, 2
"""Of an H100 SXM or H200, and warps to each; blocks say on which SM they are, so others do too."""
RUNS = 11
KEY = 0x5A
"""A byte of what every word is exclusive-ored with."""
ABOUT = 3
"""Numbers that each block leaves: begin, end, SM."""

LOAD = re.compile(r"\{ \.reg[^}]*?, (%\w+); ld\.volatile\.global\.(b\d+) (%\w+), \[a\]; \}")
STORE = re.compile(r"st\.volatile\.global\.b\d+ \[%\w+\], (%\w+);")
BARRIER = re.compile(r"^\s*(bar(?:rier)?\.(?:warp\.)?sync[^;]*;)", re.MULTILINE)


def looped(ptx: str, rounds: int) -> tuple[str, int]:
    """PTX of conversion_kernels.py with the loop, and how many words a thread holds.

    Memory has the words of each thread, room for as many, and ABOUT numbers of each block.
    FragirError where the kernel branches, or has more words on one side than on the other.
    """
    loads, stores = list(LOAD.finditer(ptx)), list(STORE.finditer(ptx))
    if not loads or len(loads) != len(stores):
        raise FragirError(f"{len(loads)} words become {len(stores)}")
    start, end = loads[0].start(), stores[-1].end()
    body = ptx[start:end]
    if re.search(r"\bbra\b|^\s*\$?\w+:", body, re.MULTILINE):
        raise FragirError("its kernel has branches")
    pointer, kind = loads[0][1], loads[0][2]
    count, size = len(loads), int(kind[1:]) // 8
    # shared memory is written again only when all have read it
    barrier = found[1] if (found := BARRIER.search(body)) else ""
    words = iter(range(count))
    key = "0x" + f"{KEY:02x}" * size
    body = LOAD.sub(lambda one: f"xor.{kind} {one[3]}, %held{next(words)}, {key};", body)
    words = iter(range(count))
    body = STORE.sub(lambda one: f"mov.{kind} %held{next(words)}, {one[1]};", body)
    threads = re.search(r"\.(?:req|max)ntid (\d+)", ptx)
    assert threads is not None
    room = int(threads[1]) * count * size
    before = [
        f".reg .b32 %thread, %left, %block, %sm; .reg .{kind} %held<{count}>;",
        ".reg .b64 %words, %about, %began, %ended, %number; .reg .pred %more, %first;",
        "mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %sm, %smid;",
        f"mad.wide.u32 %words, %thread, {count * size}, {pointer};",
        *(f"ld.global.{kind} %held{i}, [%words+{i * size}];" for i in range(count)),
        f"mad.wide.u32 %about, %block, {8 * ABOUT}, {pointer};",
        f"mov.u32 %left, {rounds};",
        "bar.sync 0;",
        "mov.u64 %began, %clock64;",
        "AGAIN:",
        barrier,
    ]
    after = [
        "sub.u32 %left, %left, 1; setp.ne.u32 %more, %left, 0;",
        "@%more bra AGAIN;",
        "bar.sync 0;",
        "mov.u64 %ended, %clock64;",
        *(f"st.global.{kind} [%words+{room + i * size}], %held{i};" for i in range(count)),
        "setp.eq.u32 %first, %thread, 0; cvt.u64.u32 %number, %sm;",
        *(
            f"@%first st.global.u64 [%about+{2 * room + 8 * i}], %{name};"
            for i, name in enumerate(("began", "ended", "number"))
        ),
    ]
    text = "\n".join([ptx[:start], *before, body, *after]) + ptx[end:]
    head, brace, rest = text.partition("\n{")
    return f'{head}\n.pragma "nounroll";{brace}{rest}', count


def turned(source: Array, target: Array, words: Array, rounds: int) -> Array:
    """What threads hold (threads x words) after so many turns of the loop, between `places`."""
    held = words.view(f"u{words.nbytes // source[..., 0].size}").reshape(source.shape[:-1])
    tile = np.empty(source.reshape(-1, 2).max(0) + 1, held.dtype)
    key = held.dtype.type(int.from_bytes(bytes([KEY] * held.itemsize)))
    for _ in range(rounds):
        tile[*np.moveaxis(source, -1, 0)] = held ^ key
        held = tile[*np.moveaxis(target, -1, 0)]
    return np.ascontiguousarray(held).reshape(len(words), -1).view(words.dtype)


def places(layout: Any) -> Array:
    """Where the tile has what a thread's register holds: threads x elements x 2."""
    axes = [name for name in ("warp", "lane", "element") if name in layout.names]
    table = np.transpose(layout.array(), (*(layout.names.index(name) for name in axes), -1))
    return table.reshape(-1, layout.size("element"), 2)


def candidates() -> Iterator[Any]:
    """Cases whose tile is in every layout once, and whose conversion is more than a new name.

    None of 64 bits: ptxas puts moves into Triton's loops of those, which its kernels have not.
    """
    importlib.import_module("benchmarks.gpu.neighbour")  # finds the modules of the benchmarks
    from conversion_cases import CASES

    for case in CASES:
        if (
            case.bits < 64
            and case.goal != 0
            and all(x.is_bijection(case.shape) for x in (case.source, case.target))
        ):
            yield case


def units(kit: Kit) -> list[str]:
    """Names of the conversions that the kit has."""
    return list(loaded(kit))


def loaded(kit: Kit) -> dict[str, Any]:
    """What `prepare` has written."""
    path = kit.path("conversions.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def prepare(kit: Builder) -> None:
    """Kernels of both, with the same ptxas; hashes of what they must write."""
    made: dict[str, dict[str, Any]] = {}
    widths: Counter[int] = Counter()
    for case in candidates():
        if widths[case.bits] < kit.size(OF_A_WIDTH, 1):
            try:
                made[case.name] = described(kit, case)
            except (FragirError, ValueError) as error:
                kit.leave_out(f"conversion: {case.name}", str(error))
                continue
            widths[case.bits] += 1
    kit.keep("conversions.json", json.dumps(made).encode())


def described(kit: Builder, case: Any) -> dict[str, Any]:
    """A conversion's kernels and what they write; FragirError where one cannot be had."""
    from conversion_kernels import fragir_ptx, triton_module

    rounds = kit.size(ROUNDS, SMALL_ROUNDS)
    source, target = places(case.source), places(case.target)
    texts = {
        "fragir": (fragir_ptx(case, TARGET), target, {"shared": 0, "scratch": 0}),
        "nothing": (fragir_ptx(case, TARGET, False), source, {"shared": 0, "scratch": 0}),
    }
    if kit.triton is not None:
        answer = kit.triton.ask({"ttgir": triton_module(case, 90), "target": 90})
        if "error" in answer:
            raise FragirError(answer["error"])
        facts = {key: answer[key] for key in ("shared", "scratch", "triton")}
        texts["Triton"] = base64.b64decode(answer["ptx"]).decode(), target, facts
    loops = {name: looped(text, rounds) for name, (text, _, _) in texts.items()}
    (count,) = {count for _, count in loops.values()}
    before = inputs(32 * case.warps, count, case.bits)
    kernels: dict[str, Any] = {}
    for name, (_, where, facts) in texts.items():
        if added := moves(kit.carry(loops[name][0], TARGET).cubin):
            raise FragirError(f"ptxas puts {added} moves into {name}'s loop")
        after = hashlib.sha256(turned(source, where, before, rounds).tobytes()).hexdigest()
        kernels[name] = {"ptx": loops[name][0], "sha256": after, **facts}
    return {"bits": case.bits, "threads": len(before), "words": count, "kernels": kernels}


def moves(cubin: bytes) -> int:
    """Moves in the loop, but for one or two that count or name an address."""
    from fragir.toolchain import sass

    between = sass.disassemble(cubin).split("SR_CLOCKLO")[1]
    loop = between[between.index(".L_x_") :]
    found = len(re.findall(r"\bU?(?:IMAD\.)?MOV\b", loop))
    return found if found > 2 else 0


def inputs(threads: int, words: int, bits: int) -> Array:
    """Any numbers in the registers of a block."""
    kind = np.uint64 if bits == 64 else np.uint32
    rng = np.random.default_rng(0)
    return rng.integers(0, np.iinfo(kind).max, (threads, words), kind, endpoint=True)


def run(work: Work) -> dict[str, Any]:
    """Cycles of fragir's loop, Triton's, and that with nothing but what they share."""
    kit = work.kit
    facts = loaded(kit)[work.unit]
    rounds = kit.size(ROUNDS, SMALL_ROUNDS)
    blocks = kit.size(SMS * WARPS * 32 // facts["threads"], SMALL_BLOCKS)
    words = inputs(facts["threads"], facts["words"], facts["bits"]).view(np.uint8).reshape(-1)
    room = len(words)
    fresh = np.zeros(2 * room + 8 * ABOUT * blocks, np.uint8)
    fresh[:room] = words
    wanted: list[str] = []
    with on_gpu([fresh]) as (memory,):

        def starts(kernel: dict[str, Any], grid: int) -> Contender:
            begin = driver.prepare(
                kit.cubin(kernel["ptx"]),
                "conversion",
                grid=(grid,),
                block=(facts["threads"],),
                arguments=[memory.address, *[None] * kernel["scratch"]],
                shared=kernel["shared"],
            )
            wanted[:] = [kernel["sha256"]]
            return Contender(begin, {"triton": kernel["triton"]} if "triton" in kernel else {})

        def wrong() -> str:
            found = hashlib.sha256(memory.get()[room : 2 * room].tobytes()).hexdigest()
            memory.put(fresh)
            return "" if [found] == wanted else "the elements are elsewhere"

        makers = {
            name: lambda kernel=kernel: starts(kernel, blocks)
            for name, kernel in facts["kernels"].items()
        }
        found = contest(work, makers, wrong, rounds=RUNS, flush=False)
        for name, result in found["results"].items():
            kernel = facts["kernels"][name]
            for key, grid in (("cycles", blocks), ("alone", 1)):
                result[key] = cycles(starts(kernel, grid), memory, grid, 2 * room, rounds)
    return {**found, "rounds_of_a_run": rounds, "blocks": blocks, "bits": facts["bits"]}


def cycles(
    contender: Contender, memory: DeviceArray, grid: int, at: int, rounds: int
) -> list[float]:
    """Cycles of an SM for a turn of the loop: median, low, high over SMs and runs."""
    found: list[float] = []
    for _ in range(RUNS):
        contender.start()
        driver.call("cuStreamSynchronize", 0)
        about = memory.get()[at:].view(np.uint64).reshape(-1, ABOUT)[:grid]
        for sm in np.unique(about[:, 2]):
            here = about[about[:, 2] == sm]
            spent = int(here[:, 1].max()) - int(here[:, 0].min())
            found.append(spent / (rounds * len(here)))
    return list(median(found))
