"""tcgen05.mma as instructions of the table: spellings, what is legal, probe kernels that run."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir import isa
from fragir.emulator import run
from fragir.errors import FragirError
from fragir.isa.emit import default_target, default_variant, emit_ptx, parameters
from fragir.isa.tensor_mma import legal_products, product_of
from fragir.isa.tensor_probes import COLUMNS, ROWS, N, probed

Ints = npt.NDArray[np.int64]
EVERYTHING = [i for i in isa.instructions() if i.family.startswith("tcgen05.mma")]
RUNNABLE = [
    i
    for i in EVERYTHING
    if not i.form.flags & {"kind::ti16", "ashift"} and "table" not in i.operands
]


def test_counts() -> None:
    """4 kinds for 1 and 2 CTAs, dense and sparse, shifted or not, and ti16; 10 vector sizes."""
    plain, scaled, tables = 5 * 2 * 2 * 2, 10 * 2 * 2, 2 * (1 + 3)
    assert len(EVERYTHING) == plain + scaled + tables + 5 * 2
    assert {len(i.variants) for i in EVERYTHING if "ashift" in i.form.flags} == {1}


def test_hints_are_read_and_belong_to_the_name() -> None:
    found = isa.lookup("tcgen05.mma.collector::a::use.kind::tf32.cta_group::1")
    assert found.mnemonic == "tcgen05.mma.cta_group::1.kind::tf32.collector::a::use"
    assert "sm_110f" in found.targets
    assert isa.lookup("tcgen05.mma.cta_group::1.kind::tf32.collector::b::use").targets == {
        "sm_107a": "9.4",
        "sm_107f": "9.4",
    }
    bank = isa.lookup("tcgen05.mma.ws.cta_group::1.kind::i8.collector::b3::fill")
    assert set(bank.targets) == {"sm_100a", "sm_110a"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("tcgen05.mma.sync.aligned.cta_group::1.kind::f16", r"\.sync does not stand there"),
        ("tcgen05.mma.sp.ws.cta_group::1.kind::f16", r"\.ws stands right behind \.mma"),
        ("tcgen05.mma.cta_group::1.kind::i8.collector::b::fill", "without .collector::b::fill"),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::use", "without .collector"),
        ("tcgen05.mma.ws.cta_group::2.kind::f16", "with .cta_group::1"),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale", "with .block16|with .scale_vec"),
        ("tcgen05.mma.cta_group::1.kind::f16.kind::f16", "twice"),
    ],
)
def test_what_there_is_not(wrong: str, message: str) -> None:
    with pytest.raises(isa.UnknownInstruction, match=message):
        isa.lookup(wrong)


def test_targets_say_where() -> None:
    with pytest.raises(FragirError, match=r"not on sm_103a|sm_103a does not have it"):
        isa.lookup("tcgen05.mma.cta_group::1.kind::i8", target="sm_103a")
    with pytest.raises(FragirError, match="no form with A as 'registers'"):
        emit_ptx(isa.lookup("tcgen05.mma.cta_group::1.kind::f16"), "sm_100a", "registers")


def test_legal_products() -> None:
    """PTX ISA 9.1, table 39: one row."""
    found = legal_products(isa.lookup("tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale"))
    assert found == {
        "a": ["e2m1"],
        "d": ["f32"],
        "scale": ["ue8m0"],
        "k": [128],
        "mn": [{"m": 256, "n": list(range(16, 257, 16))}],
        "beside": [],
    }
    integers = legal_products(isa.lookup("tcgen05.mma.ws.cta_group::1.kind::i8"))
    fours = isa.lookup("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X")
    assert legal_products(fours)["beside"] == [
        {"k": 96, "targets": ["sm_103a", "sm_107a"]},
        {"k": 128, "targets": ["sm_107a"]},
        {"scale": "ue5m3", "targets": ["sm_107a"]},
    ]
    eights = isa.lookup("tcgen05.mma.cta_group::2.kind::f8f6f4")
    assert legal_products(eights)["beside"] == [
        {"k": 64, "a": ["e4m3", "e5m2"], "targets": ["sm_107a", "sm_107f"]}
    ]
    assert integers["mn"] == [{"m": m, "n": [64, 128, 256]} for m in (32, 64, 128)]


# -- products --------------------------------------------------------------------------------------

ONES = {"f16": 0x3C00, "tf32": 0x3F800000, "e4m3": 0x38, "u8": 1, "e2m1": 2, "ue8m0": 127}
TWOS = {"f16": 0x4000, "tf32": 0x40000000, "e4m3": 0x40, "u8": 2, "e2m1": 4}
BITS = {"f16": 16, "tf32": 32, "e4m3": 8, "u8": 8, "e2m1": 4}


def rows_of(values: Ints, element: str) -> npt.NDArray[np.uint8]:
    """[row, byte] of 0, 1 and 2, low elements in low bits."""
    codes = np.array([0, ONES[element], TWOS[element]], np.uint32)[values]
    bits = BITS[element]
    if bits == 4:
        return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    return np.ascontiguousarray(codes.astype(f"<u{bits // 8}")).view(np.uint8)


def core_matrices(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """K-major without swizzle: core matrices of 8 rows of 16 bytes, along K first."""
    count, width = rows.shape
    return rows.reshape(count // 8, 8, width // 16, 16).transpose(0, 2, 1, 3).reshape(-1)


def dense(packed: Ints, kind: str) -> Ints:
    """A of a sparse product: the first half of every chunk is kept (metadata 4)."""
    kept = {"tf32": 1, "mxf4": 4, "mxf4nvf4": 4}.get(kind, 2)
    found = np.zeros((len(packed), packed.shape[1] // kept, 2 * kept), np.int64)
    found[:, :, :kept] = packed.reshape(len(packed), -1, kept)
    return found.reshape(len(packed), -1)


def products(instruction: isa.Instruction, variant: str, seed: int) -> tuple[Any, Any]:
    """D of the probe kernel in the emulator, and by numpy."""
    kind, group, _, sparse = product_of(instruction.form)
    shape, random = probed(instruction), np.random.default_rng(seed)
    bits = BITS[shape.a]
    a = random.integers(0, 3, (shape.m, 256 // bits))
    b = random.integers(0, 3, (shape.n, (1 + sparse) * 256 // bits))
    c = random.integers(-5, 6, (shape.m, shape.n))
    dtype = np.int32 if shape.d == "s32" else np.float32
    packed = rows_of(a, shape.a)
    ones = {"ue8m0": 0x7F7F7F7F, "ue4m3": 0x38383838}.get(shape.scale, 0)
    d = c.astype(dtype)
    blocks = range(group)
    given: dict[str, npt.NDArray[Any]] = {
        "d": d,
        "a": packed.view(np.uint32),
        "a-shared": np.concatenate([core_matrices(packed[ROWS * i :][:ROWS]) for i in blocks]),
        "b": np.concatenate([core_matrices(rows_of(part, shape.a)) for part in np.split(b, group)]),
        "e": np.full((shape.m, COLUMNS["e"][1]), 0x44444444, np.uint32),
        **{n: np.full((shape.m, COLUMNS[n][1]), ones, np.uint32) for n in ("sfa", "sfb")},
    }
    target = default_target(instruction)
    run(
        emit_ptx(instruction, target, variant),
        grid=(group,),
        block=(128,),
        cluster=(group,),
        arguments=[given[name] for name in parameters(instruction, variant)],
    )
    whole = dense(a, kind) if sparse else a
    return d, c + whole @ b.T


@pytest.mark.parametrize("seed", range(12))
def test_probes_multiply(seed: int) -> None:
    """Every form, a twelfth of them for each seed."""
    chosen = Random(3).sample(RUNNABLE, len(RUNNABLE))[seed::12]
    for instruction in chosen:
        for variant in instruction.variants:
            found, wanted = products(instruction, variant, seed)
            assert np.array_equal(found, wanted), f"{instruction.mnemonic} {variant}"


def test_the_default_variant_has_a_in_shared_memory() -> None:
    assert default_variant(isa.lookup("tcgen05.mma.cta_group::1.kind::f16")) == "descriptor"
    shifted = isa.lookup("tcgen05.mma.cta_group::1.kind::f16.ashift")
    assert default_variant(shifted) == "tensor-memory"
    assert default_variant(isa.lookup("movmatrix.sync.aligned.m8n8.trans.b16")) == "registers"
    assert N == 64
