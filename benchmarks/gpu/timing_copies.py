"""Cases of microbenchmarks: shared memory, bulk copies, barriers, caches and global memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from benchmarks.gpu.timing_cases import ROW, Case, fill, kept

PEER = ".reg .b32 %peer; xor.b32 %peer, %block, 1;"
TOGETHER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
"""Until both blocks of a pair are there: before one looks into the other, and before one ends."""

# Shared memory ----------------------------------------------------------------------------------

MATRICES = tuple(
    (f"{name}.sync.aligned.m8n8.x{n}{trans}.shared.b16", n)
    for name, trans, n in product(("ldmatrix", "stmatrix"), ("", ".trans"), (1, 2, 4))
)
ACCESSES = tuple(
    (f"{name}.shared{vector}.b32", n)
    for name, (vector, n) in product(("ld", "st"), (("", 1), (".v2", 2), (".v4", 4)))
)
"""Instructions and how many words of a lane each moves."""


def matrices() -> Iterator[Case]:
    """ldmatrix and stmatrix, and rows in the same banks."""
    for name, words in MATRICES:
        yield _chase(name, words)
        yield from (_rate(name, words, warps, 16) for warps in (4, 16))
    for name in ("ldmatrix", "stmatrix"):
        name += ".sync.aligned.m8n8.x4.shared.b16"
        yield _rate(name, 4, 4, 128, ", rows in the same banks")


def shared() -> Iterator[Case]:
    """ld.shared and st.shared, conflicts of banks, atomics, the other block of a cluster."""
    for name, words in ACCESSES:
        yield _chase(name, words)
        yield from (_rate(name, words, warps, 4 * words) for warps in (4, 16))
    for name, ways in product(("ld", "st"), (2, 4, 8, 16, 32)):
        yield _rate(f"{name}.shared.b32", 1, 4, 4 * ways, f", {ways} ways of a bank")
    yield _rate("ld.shared.b32", 1, 4, 0, ", one word for all lanes")
    head = f"""{fill(128, "%zero")}
.reg .b32 %r; mov.b32 %r, %zero; mad.lo.u32 %at, %lane, 4, %base;"""
    atom, red = "atom.shared.add.u32 %r, [%at], %r;\n", "red.shared.add.u32 [%at], %r;\n"
    yield Case("atom.shared.add.u32: latency", atom * 32, 32, head, kept(["%r"]), shared=128)
    name = "red.shared.add.u32: rate, 4 warps"
    yield Case(name, red * 32, 32, head, threads=128, issuers=4, shared=128)
    for name in ("ld", "st"):
        name += ".shared::cluster.v4.b32"
        yield _rate(name, 4, 16, 16, ", of the other block, in both directions")
    head = f"""{PEER} mad.lo.u32 %t4, %lane, 4, %base;
mapa.shared::cluster.u32 %t3, %t4, %block; st.shared.b32 [%t4], %t3;
mapa.shared::cluster.u32 %at, %t4, %peer;
{TOGETHER}"""
    load, name = "ld.shared::cluster.b32 %at, [%at];\n", "ld.shared::cluster.b32 of the other block"
    tail = TOGETHER + kept(["%at"])
    yield Case(f"{name}: latency", load * 16, 16, head, tail, shared=128, blocks="pair")


def _access(name: str, words: Sequence[str], address: str) -> str:
    vector = "matrix" in name or len(words) > 1
    held = f"{{{', '.join(words)}}}" if vector else words[0]
    return f"{name} {held}, [{address}];" if name[0] == "l" else f"{name} [{address}], {held};"


def _rate(name: str, words: int, warps: int, stride: int, more: str = "") -> Case:
    """Accesses of many warps, the lanes of each `stride` bytes apart."""
    loads, away = name[0] == "l", "::cluster" in name
    apart = max(32 * stride, 128)
    names = [f"%r{i}" for i in range(8 * words)]
    lines = [
        _access(name, names[j * words : (j + 1) * words], f"%at+{j * apart}") for j in range(8)
    ]
    if loads:
        lines.append(kept(names))
    # what is added is 0, which ptxas does not know: no access is the same as one before
    lines.append("add.u32 %at, %at, %zero;")
    values = "\n".join(f"mov.b32 {word}, %zero;" for word in names)
    own = "" if loads else f"mad.lo.u32 %at, %warp, {8 * apart}, %at;"  # each warp stores elsewhere
    far = f"{PEER} mapa.shared::cluster.u32 %at, %at, %peer; {TOGETHER}" if away else ""
    return Case(
        f"{name}{more}: rate, {warps} warps",
        "\n".join(lines * 4),
        32,
        f"""{fill(8 * apart, "%zero")}
.reg .b32 %r<{8 * words}>; {values}
mad.lo.u32 %at, %lane, {stride}, %base; {own} {far}""",
        (TOGETHER if away else "") + ("" if loads else kept(["%at"])),
        threads=32 * warps,
        issuers=warps,
        work={"bytes": 128 * words},
        shared=8 * apart * (1 if loads else warps),
        blocks="pair" if away else "one",
    )


def _chase(name: str, words: int) -> Case:
    """Loads of which each has the address of the next, or stores and loads in turns."""
    loads, matrix, trans = name[0] == "l", "matrix" in name, ".trans" in name
    first = "%at" if loads and not trans else "%r0"
    names = [first, *(f"%r{i}" for i in range(1, words))]
    line, what, filled = _access(name, names, "%at"), "latency", ""
    if not loads:
        back = name.replace("st", "ld" if matrix else "ld.volatile", 1)
        line += _access(back, names, "%at")
        what = "latency to the load that reads it, and of that"
    elif trans:
        line += "add.u32 %at, %at, %r0;"
        what, filled = "latency, and of an addition", fill(512, "%zero")
    elif matrix:  # a word holds where the lane that gets it reads next
        word = "sub.u32 %t3, %at, %base; and.b32 %t3, %t3, 124; mad.lo.u32 %t3, %t3, 4, %base;"
        filled = fill(512, "%t3", word)
    else:
        filled = fill(512, "%at")
    return Case(
        f"{name}: {what}",
        "\n".join([line] * 32),
        32,
        f"""{filled}
.reg .b32 %r<{words}>; {" ".join(f"mov.b32 %r{i}, %zero;" for i in range(words))}
mad.lo.u32 %at, %lane, {16 if matrix else 4 * words}, %base;""",
        kept(names),
        shared=512,
    )


# Bulk copies ------------------------------------------------------------------------------------

BOXES = (8, 16, 32, 64, 128, 256)
"""Rows of 128 bytes."""
BULKS = (128, 512, 2048, 8192, 16384, 32768)
"""Bytes."""
FLIGHT = 192 << 10
"""Bytes on their way to one SM, at most; 32 copies are enough of small ones."""
_DATA = 1024
"""Bytes of shared memory before what copies write: mbarriers of 8 bytes."""


def tma() -> Iterator[Case]:
    """Loads by TMA: one alone, and as many as are of use, of one SM and of all; stores."""
    copies = [(f"TMA box of {rows} rows of {ROW} bytes", rows * ROW, rows) for rows in BOXES]
    copies += [(f"bulk copy of {size} bytes", size, 0) for size in BULKS]
    for name, size, box in copies:
        one = _ring(f"{name}: latency, L2", size, box, 1, 1)
        yield one
        moved = f"add.u64 %from, %from, {size}; add.u32 %row, %row, {size // ROW};"
        yield one._replace(
            name=f"{name}: latency, DRAM", body=f"{one.body}\n{moved}", flush=True, rounds=(8, 40)
        )
        batch = max(1, min(32, FLIGHT // size) // 4)
        what = f"{name}: rate, 4 stages of {batch}"
        many = _ring(f"{what}, one SM, L2", size, box, 4, batch)._replace(issuers=1)
        yield many
        yield many._replace(name=f"{what}, all SMs, L2", blocks="all")
    for rows in (32, 64):
        name = f"TMA box of {rows} rows of {ROW} bytes to both blocks of a pair"
        case = _ring(
            f"{name}: rate, 4 stages of 1, all SMs, L2", rows * ROW, rows, 4, 1, peers=True
        )
        yield case._replace(issuers=1, blocks="pairs")
    for batch in (1, 4, 16, 32):  # how fast one thread starts copies
        yield _ring(f"bulk copy of 128 bytes: {batch} and a wait", 128, 0, 1, batch)
    for rows, (pending, read) in product((8, 64, 128), ((0, ""), (0, ".read"), (3, ".read"))):
        yield _store(rows, pending, read)


def _wait(barrier: str, parity: object, label: str, scope: str = "") -> str:
    """Until the phase of an mbarrier is over."""
    try_wait = f"mbarrier.try_wait.parity{scope}.shared::cta.b64 %p, [{barrier}], {parity};"
    return f"{label}: {try_wait}\n@!%p bra {label};\n"


def _ring(name: str, size: int, box: int, stages: int, batch: int, *, peers: bool = False) -> Case:
    """Copies of `size` bytes into a ring: `stages` mbarriers, `batch` copies for each.

    One thread waits for a stage and starts its copies anew. `box`: rows of a tensor map's box, or
    0. `peers`: each block of a pair copies to both, every other place.
    """
    share = 2 if peers else 1
    expected = share * batch * size
    region = stages * expected
    kind = ".tensor.2d.shared::cluster.global.tile" if box else ".shared::cluster.global"
    copy = f"cp.async.bulk{kind}.mbarrier::complete_tx::bytes"
    copy, mask = (f"{copy}.multicast::cluster", ", %both") if peers else (copy, "")

    def start(stage: int) -> str:
        barrier = f"%base+{8 * stage}"
        text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {expected};"
        for place in range(stage * expected, (stage + 1) * expected, share * size):
            row = f"\nadd.u32 %t1, %row, {place // ROW};" if box else ""
            source = "[%map, {0, %t1}]" if box else f"[%from+{place}], {size}"
            text += f"{row}\n{copy} [%to+{_DATA + place}], {source}, [{barrier}]{mask};"
        return text + "\n"

    def emptied(stage: int) -> str:
        """Until both blocks have had what a stage holds."""
        at = 8 * (stages + stage)
        arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t1];"
        return "".join(
            f"add.u32 %t1, %base, {at}; mapa.shared::cluster.u32 %t1, %t1, {rank}; {arrive}\n"
            for rank in range(2)
        ) + _wait(f"%base+{at}", "%t0", f"EMPTY{stage}", ".acquire.cluster")

    def waits(label: str) -> list[str]:
        return [_wait(f"%base+{8 * stage}", "%t0", f"{label}{stage}") for stage in range(stages)]

    counts = [1] * stages + ([2] * stages if peers else [])
    inits = (f"mbarrier.init.shared::cta.b64 [%base+{8 * i}], {n};" for i, n in enumerate(counts))
    together = f"bar.warp.sync -1; {TOGETHER}" if peers else ""
    rounds = [
        wait + (emptied(stage) if peers else "") + start(stage)
        for stage, wait in enumerate(waits("FULL"))
    ]
    return Case(
        name,
        "and.b32 %t0, %i, 1;\n" + "".join(rounds),
        stages * batch,
        f""".reg .b32 %row, %to, %rank, %pair; .reg .b16 %both; .reg .b64 %from;
and.b32 %rank, %block, {share - 1}; shr.u32 %pair, %block, {share - 1};
mad.lo.u32 %to, %rank, {size}, %base; mov.u16 %both, 3;
mul.lo.u32 %row, %pair, {region // ROW}; mad.lo.u32 %row, %rank, {size // ROW}, %row;
mul.wide.u32 %w0, %pair, {region}; add.u64 %from, %memory, %w0;
@!%lead bra MADE;
{" ".join(inits)}
fence.mbarrier_init.release.cluster;
MADE: {together}
@!%lead bra BEGUN;
{"".join(map(start, range(stages)))}BEGUN:""",
        f"""@!%lead bra OVER; and.b32 %t0, %n, 1;
{"".join(waits("LAST"))}OVER: {together}""",
        work={"bytes": share * size},
        shared=_DATA + region,
        solo=True,
        box=box,
    )


def _store(rows: int, pending: int, read: str) -> Case:
    """Boxes stored to one place after the other, `pending` of them under way."""
    size, stages = rows * ROW, pending + 1
    what = f"rate, {stages} at once" if pending else f"latency{' of its reads' if read else ''}"
    store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    lines = [
        f"""add.u32 %t1, %row, {stage * rows};
{store} [%map, {{0, %t1}}], [%base+{stage * size}];
cp.async.bulk.commit_group; cp.async.bulk.wait_group{read} {pending};"""
        for stage in range(stages)
    ]
    return Case(
        f"TMA store of {rows} rows of {ROW} bytes: {what}",
        "\n".join(lines),
        stages,
        f"""{fill(stages * size, "%zero")}
fence.proxy.async; .reg .b32 %row; mul.lo.u32 %row, %block, {stages * rows};""",
        "cp.async.bulk.wait_group 0;",
        issuers=1 if pending else 0,
        work={"bytes": size},
        shared=stages * size,
        solo=True,
        box=rows,
    )


# Barriers ---------------------------------------------------------------------------------------

_ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%base];"
_GROUP = (
    "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
)
ARRIVALS = (
    ("one thread", 1, 32),
    ("all of a warp", 32, 32),
    ("a thread of each of 4 warps", 4, 128),
    ("all of 4 warps", 128, 128),
    ("a thread of each of 8 warps", 8, 256),
)
"""Who arrives at an mbarrier, how many they are, of how many threads."""
FENCES = (
    ("fence.proxy.async;", 1),
    ("fence.proxy.async;", 4),
    ("st.shared.b32 [%at], %zero; fence.proxy.async;", 4),
    *((f"fence.acq_rel.{scope};", 1) for scope in ("cta", "cluster", "gpu")),
    (_GROUP, 4),
)
"""Fences, and wgmma's without a product; of how many warps."""


def barriers() -> Iterator[Case]:
    """mbarriers and named barriers, of one block and of two; fences."""
    for who, count, threads in ARRIVALS:
        arrive = _ARRIVE if count == threads else f"@%lead {_ARRIVE}"
        body = "".join(f"{arrive}\n{_wait('%base', i % 2, f'FULL{i}')}" for i in range(8))
        name = f"mbarrier: {who} arrives, all wait: latency"
        yield Case(name, body, 8, _made(count), threads=threads, shared=64)
    for test in ("try_wait", "test_wait"):
        body = "".join(_wait("%base", 0, f"OVER{i}") for i in range(16))
        head = f"{_made(1)}\n@%lead {_ARRIVE}\n{_wait('%base', 0, 'FIRST')}"
        name = f"mbarrier.{test} of a phase that is over: latency"
        yield Case(name, body.replace("try_wait", test), 16, head, shared=64)
    # a warp (or block) waits for its own and arrives at the other's, which does the same
    arrive = "@%lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%their];\n"
    body = "".join(_wait("%own", i % 2, f"OWN{i}", ".acquire.cluster") + arrive for i in range(8))
    first = "@%p mbarrier.arrive.shared::cta.b64 _, [%own];"
    head = f"""{_made(1, 1)}
.reg .b32 %own, %their; mad.lo.u32 %own, %warp, 8, %base; xor.b32 %t1, %warp, 1;
mad.lo.u32 %their, %t1, 8, %base; setp.eq.and.u32 %p, %warp, 0, %lead; {first}"""
    name = "mbarrier: from warp to warp and back: latency"
    yield Case(name, body, 8, head, threads=64, shared=64)
    head = f"""{_made(1)} {PEER}
.reg .b32 %own, %their; mov.u32 %own, %base; mapa.shared::cluster.u32 %their, %base, %peer;
{TOGETHER} setp.eq.and.u32 %p, %block, 0, %lead; {first}"""
    name = "mbarrier: from block to block of a pair and back: latency"
    yield Case(name, body, 8, head, TOGETHER, shared=64, blocks="pair")
    for warps in (1, 2, 4, 8, 16, 32):
        name = f"bar.sync of {warps} warps: latency"
        yield Case(name, "bar.sync 0;\n" * 16, 16, threads=32 * warps)
    head = """add.u32 %t4, %warp, 1; sub.u32 %t5, 2, %warp; setp.eq.u32 %p, %warp, 1;
@%p bar.arrive %t5, 64;"""
    tail = "setp.eq.u32 %p, %warp, 0; @%p bar.sync %t4, 64;"  # for what the other did last
    name = "bar.sync and bar.arrive: from warp to warp and back: latency"
    yield Case(name, "bar.sync %t4, 64; bar.arrive %t5, 64;\n" * 8, 8, head, tail, threads=64)
    for warps in (1, 4, 8):
        name = f"barrier.cluster of 2 blocks of {warps} warps: latency"
        yield Case(name, f"{TOGETHER}\n" * 8, 8, threads=32 * warps, blocks="pair")
    head = "mad.lo.u32 %at, %lane, 4, %base;"
    for line, warps in FENCES:
        name = f"{line.rstrip(';').replace('%', '')}, {warps} warps: latency"
        yield Case(name, f"{line}\n" * 16, 16, head, threads=32 * warps, shared=128)


def _made(*counts: int) -> str:
    """mbarriers for so many arrivals."""
    inits = (f"mbarrier.init.shared::cta.b64 [%base+{8 * i}], {n};" for i, n in enumerate(counts))
    return f"""setp.ne.u32 %p, %warp, 0; @%p bra MADE;
@!%lead bra MADE;
{" ".join(inits)}
fence.mbarrier_init.release.cluster;
MADE: bar.sync 0;"""


# Global memory ----------------------------------------------------------------------------------

CHAINS = (
    ("L1", "ld.global.ca.u64", 16 << 10, False),
    ("L2", "ld.global.cg.u64", 8 << 20, False),
    ("DRAM", "ld.global.cg.u64", 8 << 20, True),
)
"""Where what a pointer leads to is found, how it is loaded, bytes, whether caches are flushed."""
_FEW, _MANY = (5, 53), (16, 144)
STREAMS = (
    ("read, L2, 16 MiB, all SMs", "ld.global.cg", 16 << 20, _MANY, "all"),
    ("read, L2, 32 MiB, all SMs", "ld.global.cg", 32 << 20, _MANY, "all"),
    ("read, DRAM, all SMs", "ld.global", 512 << 20, _FEW, "all"),
    ("write, DRAM, all SMs", "st.global", 512 << 20, _FEW, "all"),
    ("copy, DRAM, all SMs", "copy", 512 << 20, _FEW, "all"),
    ("read, L2, one SM", "ld.global.cg", 1 << 20, _MANY, "one"),
    ("read, L1, one SM", "ld.global.ca", 1 << 16, _MANY, "one"),
)
"""What is done, by which instruction, among how many bytes, in how many rounds, by whom."""
_ALONE = 120 << 10
"""Bytes of shared memory of which no two blocks have as many on one SM."""


def memory() -> Iterator[Case]:
    """Pointers that lead through a cache or none; bandwidths of all SMs; atomics."""
    for where, load, size, flush in CHAINS:
        head, body = ".reg .b64 %next; mov.b64 %next, %memory;", f"{load} %next, [%next];\n"
        tail = "cvt.u32.u64 %t0, %next; " + kept(["%t0"])
        name = f"{load}, {where}: latency"
        yield Case(name, body * 32, 32, head, tail, chain=size, flush=flush)
    yield from (_stream(*row) for row in STREAMS)
    head = """.reg .b32 %r; mov.b32 %r, %zero; mul.wide.u32 %w1, %lane, 4;
add.u64 %w1, %other, %w1;"""
    atom = "atom.global.add.u32 %r, [%w1], %r;\n"
    yield Case("atom.global.add.u32: latency", atom * 16, 16, head, kept(["%r"]))
    head = """mul.lo.u32 %t0, %thread, 16; add.u32 %at, %base, %t0; cvt.u64.u32 %w1, %t0;
add.u64 %w1, %memory, %w1;"""
    for count in (1, 8):
        places = range(0, 2048 * count, 2048)
        body = "\n".join(f"cp.async.cg.shared.global [%at+{j}], [%w1+{j}], 16;" for j in places)
        body += "\ncp.async.commit_group; cp.async.wait_group 0;"
        name = f"cp.async of 16 bytes, {count} of each lane of 4 warps and a wait, L2: latency"
        work = {"bytes": 2048 * count}
        yield Case(name, body, 1, head, threads=128, work=work, shared=2048 * count)


def _stream(name: str, op: str, span: int, rounds: tuple[int, int], blocks: str) -> Case:
    """Each block has 64 KiB a round, and the next round what no block has had, within `span`."""
    threads, part = 512, 512 * 16
    four = [f"{{{', '.join(f'%r{4 * j + i}' for i in range(4))}}}" for j in range(8)]
    load = op if op[:2] == "ld" else "ld.global"
    reads = [f"{load}.v4.b32 {held}, [%w4+{part * j}];" for j, held in enumerate(four)]
    writes = [f"st.global.v4.b32 [%w5+{part * j}], {held};" for j, held in enumerate(four)]
    names = [f"%r{j}" for j in range(32)]
    lines = {"ld": [*reads, kept(names)], "st": writes, "co": [*reads, *writes]}[op[:2]]
    return Case(
        f"{name}, 16 bytes a lane: rate",
        f"""add.u64 %w4, %memory, %w1; add.u64 %w5, %other, %w1;
{chr(10).join(lines)}
add.u64 %w1, %w1, %w3; and.b64 %w1, %w1, {span - 1};""",
        16 if op == "copy" else 8,
        f""".reg .b32 %r<32>; {" ".join(f"mov.b32 {word}, %zero;" for word in names)}
mul.wide.u32 %w1, %block, {8 * part}; mul.wide.u32 %w2, %thread, 16; add.u64 %w1, %w1, %w2;
mov.u32 %t0, %nctaid.x; mul.wide.u32 %w3, %t0, {8 * part};""",
        threads=threads,
        issuers=threads // 32,
        work={"bytes": 512},
        shared=_ALONE,
        rounds=rounds,
        blocks=blocks,
        flush=span > 64 << 20,
    )
