"""Every instruction of tensor cores that the machine has: its bits beside the emulator's.

First those that the project began with, from matrix IR to result; then probe kernels of every row
of the table (`fragir.validation.probes`), many to a cubin. The emulator's bits are made here: the
kit has a hash of each case. There only hashes are compared; where one differs, the emulator runs
again there, and what both have is kept whole, as far as there is room.

A unit is `first:NAME:NUMBER` or `table:NUMBER`; its parts are single kernels.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.errors import FragirError
from fragir.isa.emit import emit_module, emit_ptx
from fragir.validation import probes, products
from fragir.validation.report import Job, jobs
from tests.families.every import Case

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

Array = np.ndarray[Any, np.dtype[Any]]
A_CUBIN, TOGETHER = 24, 4
"""Probe kernels of one module and unit; programs of one unit, whose cases are many."""
BLOCKS = 64
"""Cases of a launch from matrix IR."""
HOT = 24
"""One-hot cases of a probe of a warpgroup's instruction; of a warp's there are all."""
CASES, SMALL_CASES = 24, 4
ROOM = 1 << 16
"""Bytes of what a unit keeps of disagreements, at most."""


class Launch(NamedTuple):
    """Arguments of one launch and which of them it writes, a block a case."""

    kind: str
    cases: int
    arguments: list[Array]
    result: int


@dataclass(frozen=True)
class Probe:
    """A kernel: its launches, and what runs one on the GPU and on the emulator."""

    name: str
    launches: Callable[[], Iterator[Launch]]
    on_gpu: Callable[[Launch], None]
    on_emulator: Callable[[Launch], None]
    ptx: str
    judge: Callable[[Launch], str] = lambda _: ""
    """What is wrong with a result that is known exactly."""


# The first ones, from matrix IR ------------------------------------------------------------------

FIRST = {
    "m8n8k4-f16": "mma.sync.aligned.m8n8k4.*.f16.f16.*",
    "m8n8k4-f64": "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "m8n8k16": "mma.sync.aligned.m8n8k16.row.col*.s32.*8.*8.s32",
    "wgmma-f32": "wgmma.mma_async.sync.aligned.m64n*k16.f32.f16.f16",
    "wgmma-f16": "wgmma.mma_async.sync.aligned.m64n*k16.f16.f16.f16",
}
"""What the project began with, by shell patterns over mnemonics; A in registers."""


@functools.cache
def table(small: bool) -> dict[str, list[Job]]:
    """The units of the table: its kernels in its order, `A_CUBIN` to a unit."""
    every = jobs(None, TARGET)
    groups = [every[i : i + A_CUBIN] for i in range(0, len(every), A_CUBIN)]
    units = {f"table:{number:03}": group for number, group in enumerate(groups)}
    if not small:
        return units
    return {name: group[:4] for name, group in list(units.items())[::16]}


@functools.cache
def first(small: bool) -> dict[str, list[Job]]:
    """The units from matrix IR: `TOGETHER` kernels each of those that one name stands for."""
    units: dict[str, list[Job]] = {}
    for name, pattern in FIRST.items():
        found = [job for job in jobs(pattern, TARGET) if job.variant == "registers"]
        found = found[:: 9 if small else 1]
        for at in range(0, len(found), TOGETHER):
            units[f"first:{name}:{at // TOGETHER}"] = found[at : at + TOGETHER]
    return units


def from_matrices(job: Job, small: bool) -> Probe:
    """A program of tiles that runs one instruction in `BLOCKS` blocks."""
    import fragir

    case = Case(job.instruction)
    kernel = fragir.compile(case.program(blocks=BLOCKS), target=TARGET)
    names = list(case.shapes())

    def arrays(matrices: dict[str, Array]) -> list[Array]:
        full = {
            x: np.concatenate([m, np.zeros((BLOCKS - len(m), *m.shape[1:]), m.dtype)])
            for x, m in matrices.items()
        }
        wanted = np.zeros((BLOCKS, *case.shapes()["d"]))
        return [case.stored(x, full[x]) for x in names if x != "d"] + [case.stored("d", wanted)]

    def launches() -> Iterator[Launch]:
        every = list(products.one_hot(job.instruction))
        for start in range(0, BLOCKS if small else len(every), BLOCKS):
            chosen = every[start : start + BLOCKS]
            made = products.one_hot_matrices(job.instruction, chosen)
            yield Launch("onehot", BLOCKS, arrays(made), len(names) - 1)
        made = products.random(job.instruction, BLOCKS, 1)
        yield Launch("random", BLOCKS, arrays(made), len(names) - 1)
        held = arrays(made)
        rng = np.random.default_rng(2)
        for array in held[:-1]:  # any bits: NaN, infinities, subnormals; half of them normal ones
            bits = rng.integers(0, 256, array.nbytes, np.uint8).reshape(BLOCKS, -1)
            if array.dtype.kind == "f":
                numbers: Array = np.asarray(rng.standard_normal(array.shape), array.dtype)
                bits[::2] = numbers.view(np.uint8).reshape(BLOCKS, -1)[::2]
            array.view(np.uint8).reshape(BLOCKS, -1)[...] = bits
        yield Launch("bits", BLOCKS, held, len(names) - 1)

    def judge(launch: Launch) -> str:
        if launch.kind == "bits":
            return ""
        given = {
            x: _matrix(case, x, array) for x, array in zip(names, launch.arguments, strict=True)
        }
        wanted = case.expected(given)
        same = np.array_equal(given["d"], wanted.astype(given["d"].dtype))
        return "" if same else "the emulator's product of integers is not exact"

    return Probe(
        job.instruction.mnemonic,
        launches,
        lambda launch: kernel.launch(BLOCKS, None, *launch.arguments, on="gpu"),
        lambda launch: kernel.launch(BLOCKS, None, *launch.arguments, on="emulator"),
        kernel.ptx,
        judge,
    )


def _matrix(case: Case, name: str, array: Array) -> Array:
    """[block, row, column, ...] values of an array as the program takes it."""
    kind = np.int64 if array.dtype.kind in "iu" else np.float64
    values = array.astype(kind)
    return values.transpose(0, 2, 1) if case.is_turned(name) else values


# The table ---------------------------------------------------------------------------------------


def from_table(jobs_: Sequence[Job], at: int, small: bool, module: str) -> Probe:
    """The probe kernel of one of the instructions of a module."""
    job = jobs_[at]
    instruction = job.instruction
    entry = "probe" if len(jobs_) == 1 else f"probe_{at}"
    judged: dict[int, Callable[[], probes.Judgement] | None] = {}

    def launches() -> Iterator[Launch]:
        hot = SMALL_CASES if small else HOT
        for made in probes.launches(
            instruction,
            job.variant,
            cases=SMALL_CASES if small else CASES,
            hot=hot if small or instruction.lanes > 32 else None,
        ):
            launch = Launch(made.kind, made.cases, list(made.arguments), made.result)
            judged[id(launch.arguments[launch.result])] = made.judge
            yield launch

    def on_gpu(launch: Launch) -> None:
        from fragir.toolchain import driver, ptxas

        cubin = ptxas.assemble(module, TARGET).cubin
        block = (instruction.lanes,)
        driver.launch(cubin, entry, grid=(launch.cases,), block=block, arguments=launch.arguments)

    def on_emulator(launch: Launch) -> None:
        ptx = emit_ptx(instruction, TARGET, job.variant)
        probes.emulator_runner(ptx, TARGET, launch.cases, instruction.lanes, launch.arguments)

    def judge(launch: Launch) -> str:
        asked = judged.pop(id(launch.arguments[launch.result]), None)
        if asked is None:
            return ""
        wrong, words = asked()
        return words(list(wrong).index(True)) if any(wrong) else ""

    name = job.instruction.mnemonic
    name += f" {job.variant}" if instruction.variants else ""
    return Probe(name, launches, on_gpu, on_emulator, module, judge)


# Units -------------------------------------------------------------------------------------------


def units(kit: Kit) -> list[str]:
    """The first ones, then the table's."""
    return [*first(kit.small), *table(kit.small)]


def parts(kit: Kit, unit: str) -> list[str]:
    """The kernels of a unit."""
    if "/" in unit:
        return [unit]
    return [f"{unit}/{number}" for number in range(len(_jobs(kit.small, unit)))]


def title(kit: Kit, unit: str) -> str:
    """The kernels of a unit by their names."""
    return ", ".join(probe.name for _, probe in unit_probes(kit.small, unit))


def _jobs(small: bool, unit: str) -> list[Job]:
    return (first if unit.startswith("first:") else table)(small)[unit]


def unit_probes(small: bool, unit: str) -> Iterator[tuple[int, Probe]]:
    """The kernels of a unit, or the one of a part, with their numbers in the unit."""
    whole, _, chosen = unit.partition("/")
    found = _jobs(small, whole)
    numbers = [int(chosen)] if chosen else range(len(found))
    if unit.startswith("first:"):
        for number in numbers:
            yield number, from_matrices(found[number], small)
        return
    module = emit_module([(job.instruction, job.variant) for job in found], TARGET)
    for number in numbers:
        yield number, from_table(found, number, small, module)


def prepare(kit: Builder) -> None:
    """Cubins of every kernel, and the emulator's bits."""
    names = units(kit)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for unit, (texts, held) in zip(
            names, pool.map(_expected, [kit.small] * len(names), names), strict=True
        ):
            kit.progress(f"{unit}: {names.index(unit) + 1} of {len(names)}")
            for ptx in texts:
                kit.carry(ptx)
            np.savez(_file(kit, unit), allow_pickle=False, **held)
    kit.progress("")
    for what, why in _not_probed():
        kit.leave_out(what, why)


def _not_probed() -> Iterator[tuple[str, str]]:
    from fragir import isa

    for instruction in isa.instructions(target=TARGET):
        if instruction.refused:
            yield f"probe of {instruction.mnemonic}", str(instruction.refused)


def _file(kit: Kit, unit: str) -> Any:
    path = kit.path(f"expected/{unit.partition('/')[0].replace(':', '-')}.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _expected(small: bool, unit: str) -> tuple[list[str], dict[str, Array]]:
    """The PTX of a unit, and by `NUMBER:LAUNCH` the hashes of inputs and of each case's result."""
    os.environ["FRAGIR_JOBS"] = "1"  # units run side by side already
    texts: dict[str, None] = {}
    held: dict[str, Array] = {}
    for number, probe in unit_probes(small, unit):
        texts[probe.ptx] = None
        for index, launch in enumerate(probe.launches()):
            inputs = _input_hash(launch)
            probe.on_emulator(launch)
            if wrong := probe.judge(launch):
                raise FragirError(f"{probe.name}, {launch.kind}: {wrong}")
            held[f"{number}:{index}"] = np.append(inputs, _hashes(launch))
    return list(texts), held


def _hashes(launch: Launch) -> Array:
    """A hash of each case's result."""
    rows = np.ascontiguousarray(launch.arguments[launch.result]).view(np.uint8)
    rows = rows.reshape(launch.cases, -1)
    data = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.frombuffer(data, np.uint64)


def _input_hash(launch: Launch) -> Array:
    """Of all arguments: the numbers drawn there must be those drawn here."""
    found = hashlib.blake2b(digest_size=8)
    for array in launch.arguments:
        found.update(np.ascontiguousarray(array).view(np.uint8).tobytes())
    return np.frombuffer(found.digest(), np.uint64)


def run(work: Work) -> dict[str, Any]:
    """`probes`: by name the cases of each kind, and which of them differ; `vectors` of those."""
    with np.load(_file(work.kit, work.unit)) as held:
        expected = dict(held)
    rows: list[dict[str, Any]] = []
    vectors: list[dict[str, Any]] = []
    room = ROOM
    for number, probe in unit_probes(work.kit.small, work.unit):
        row: dict[str, Any] = {"name": probe.name, "cases": {}, "differ": {}}
        rows.append(row)
        for index, launch in enumerate(probe.launches()):
            inputs, *wanted = expected[f"{number}:{index}"]
            row["cases"][launch.kind] = row["cases"].get(launch.kind, 0) + launch.cases
            given = [array.copy() for array in launch.arguments]
            same = _input_hash(launch)[0] == inputs
            probe.on_gpu(launch)
            found = _hashes(launch)
            if same and np.array_equal(found, wanted):
                continue
            # other inputs than those drawn here, or another result: the emulator says its own
            ours = launch._replace(arguments=given)
            before = [array.copy() for array in given]
            probe.on_emulator(ours)
            differ = np.flatnonzero(found != _hashes(ours)).tolist()
            if not same:
                row["other_inputs"] = [*row.get("other_inputs", []), launch.kind]
            if differ:
                row["differ"][launch.kind] = [*row["differ"].get(launch.kind, []), *differ]
                made = _vector(probe, launch, ours, before, differ, room)
                room -= sum(map(_size, made["results"]))
                vectors.append(made)
    wrong = [row["name"] for row in rows if row["differ"]]
    words = {"wrong": f"other bits than the emulator's: {', '.join(wrong)}"} if wrong else {}
    return {"probes": rows, "vectors": vectors, **words}


def _vector(
    probe: Probe,
    theirs: Launch,
    ours: Launch,
    inputs: Sequence[Array],
    differ: Sequence[int],
    room: int,
) -> dict[str, Any]:
    """One disagreement: of each case the words in which results differ, and all inputs.

    Where these do not fit they are left out: they can be drawn again, and everything else be
    computed from them.
    """
    made: dict[str, Any] = {"probe": probe.name, "kind": theirs.kind, "results": []}
    for case in differ:
        one, other = (
            words_of(each.arguments[each.result], each.cases)[case] for each in (ours, theirs)
        )
        at = np.flatnonzero(one != other).astype(np.int32)
        entry: dict[str, Any] = {
            "case": case,
            "type": one.dtype.str,
            "at": _text(at),
            "ours": _text(one[at]),
            "theirs": _text(other[at]),
            "inputs": [
                _text(words_of(array, theirs.cases)[case])
                for index, array in enumerate(inputs)
                if index != theirs.result
            ],
        }
        if _size(entry) > room:
            entry["inputs"] = []
        if _size(entry) > room:
            made["left_out"] = len(differ) - len(made["results"])
            break
        room -= _size(entry)
        made["results"].append(entry)
    return made


def words_of(array: Array, cases: int) -> Array:
    """[case, word] bits of an array."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(cases, -1)


def _text(array: Array) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode()


def _size(entry: dict[str, Any]) -> int:
    """How long a case of a vector is."""
    return sum(map(len, (entry["at"], entry["ours"], entry["theirs"], *entry["inputs"])))


def bytes_of(text: str) -> bytes:
    """The bytes that stand in a vector's text."""
    return zlib.decompress(base64.b64decode(text))
