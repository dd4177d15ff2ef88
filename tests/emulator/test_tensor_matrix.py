"""ldmatrix, stmatrix and movmatrix against rules typed from the ISA's figures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.tensor_cores import Ldmatrix, Movmatrix, Stmatrix, tensor_instruction
from fragir.errors import FragirError
from fragir.ptx.opcodes.table import OPCODES


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


def ld(text: str, target: str = "sm_120a") -> Ldmatrix:
    op = tensor_instruction(words("ldmatrix.sync.aligned." + text), target)
    assert isinstance(op, Ldmatrix)
    return op


def st(text: str, target: str = "sm_120a") -> Stmatrix:
    op = tensor_instruction(words("stmatrix.sync.aligned." + text), target)
    assert isinstance(op, Stmatrix)
    return op


def rows(op: Ldmatrix | Stmatrix, warps: int = 3) -> npt.NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (warps, op.rows, 16), dtype=np.uint8)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_ldmatrix_of_16_bit_elements(number: int, trans: bool) -> None:
    op = ld(f"m8n8.x{number}{'.trans' * trans}.shared.b16", "sm_80")
    assert (op.r.count, op.rows, op.all_lanes) == (number, 8 * number, False)
    data = rows(op)
    found = op.execute(data)
    assert found.shape == (number, 3, 32)
    halves = data.view(np.uint16)
    for matrix in range(number):
        for lane in range(32):
            for h in range(2):
                row, column = lane // 4, 2 * (lane % 4) + h
                if trans:
                    row, column = column, row
                part = found[matrix, :, lane] >> np.uint32(16 * h) & np.uint32(0xFFFF)
                np.testing.assert_array_equal(part, halves[:, 8 * matrix + row, column])


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_stmatrix_undoes_ldmatrix(number: int, trans: bool) -> None:
    text = f"m8n8.x{number}{'.trans' * trans}.shared.b16"
    data = rows(ld(text))
    np.testing.assert_array_equal(st(text).execute(ld(text).execute(data)), data)


@pytest.mark.parametrize("number", [1, 2])
def test_ldmatrix_m16n16(number: int) -> None:
    op = ld(f"m16n16.x{number}.trans.shared::cta.b8")
    assert (op.r.count, op.rows) == (2 * number, 16 * number)
    data = rows(op)
    found = op.execute(data)
    for register in range(2 * number):
        for lane in range(32):
            for e in range(4):
                row = 16 * (register // 2) + 4 * (lane % 4) + e
                column = lane // 4 + 8 * (register % 2)
                part = found[register, :, lane] >> np.uint32(8 * e) & np.uint32(0xFF)
                np.testing.assert_array_equal(part, data[:, row, column])


@pytest.mark.parametrize(("form", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
@pytest.mark.parametrize("shape", ["m8n16.x4", "m8n16.x1", "m16n16.x2.trans"])
def test_ldmatrix_unpacks(shape: str, form: str, bits: int) -> None:
    """Element j of a row is its bits from `bits * j` up, put in the low bits of a byte."""
    op = ld(f"{shape}.shared.b8x16.{form}")
    data = rows(op)
    found = op.execute(data)
    for w, row in ((0, 0), (1, 5), (2, op.rows - 1)):
        whole = int.from_bytes(data[w, row].tobytes(), "little")
        for column in range(16):
            expected = whole >> (bits * column) & ((1 << bits) - 1)
            if "trans" in shape:
                matrix, inner = divmod(row, 16)
                register, lane, e = (
                    2 * matrix + column // 8,
                    4 * (column % 8) + inner // 4,
                    inner % 4,
                )
            else:
                register, lane, e = row // 8, 4 * (row % 8) + column // 4, column % 4
            assert int(found[register, w, lane]) >> (8 * e) & 0xFF == expected


@pytest.mark.parametrize("number", [1, 2, 4])
def test_stmatrix_of_bytes(number: int) -> None:
    op = st(f"m16n8.x{number}.trans.shared.b8")
    assert (op.r.count, op.rows) == (number, 8 * number)
    registers = np.random.default_rng(2).integers(0, 1 << 32, (number, 3, 32), dtype=np.uint32)
    found = op.execute(registers)
    for matrix in range(number):
        for lane in range(32):
            for e in range(4):
                m, n = lane // 4 + 8 * (e // 2), 2 * (lane % 4) + e % 2
                part = registers[matrix, :, lane] >> np.uint32(8 * e) & np.uint32(0xFF)
                np.testing.assert_array_equal(found[:, 8 * matrix + n, m], part)


def test_movmatrix_transposes() -> None:
    op = tensor_instruction(words("movmatrix.sync.aligned.m8n8.trans.b16"), "sm_75")
    assert isinstance(op, Movmatrix)
    a = np.random.default_rng(3).integers(0, 1 << 32, (1, 3, 32), dtype=np.uint32)
    d = op.execute(a)
    for lane in range(32):
        for h in range(2):
            row, column = 2 * (lane % 4) + h, lane // 4
            source = a[0, :, 4 * row + column // 2] >> np.uint32(16 * (column % 2))
            part = d[0, :, lane] >> np.uint32(16 * h)
            np.testing.assert_array_equal(part & 0xFFFF, source & 0xFFFF)
    np.testing.assert_array_equal(op.execute(d), a)


def test_movmatrix_is_stmatrix_then_transposed_ldmatrix() -> None:
    op = tensor_instruction(words("movmatrix.sync.aligned.m8n8.trans.b16"), "sm_90")
    assert isinstance(op, Movmatrix)
    a = np.random.default_rng(4).integers(0, 1 << 32, (1, 2, 32), dtype=np.uint32)
    through = ld("m8n8.x1.trans.shared.b16").execute(st("m8n8.x1.shared.b16").execute(a))
    np.testing.assert_array_equal(op.execute(a), through)


def test_all_lanes_need_addresses_on_turing() -> None:
    assert ld("m8n8.x1.shared.b16", "sm_75").all_lanes


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16", "sm_70", "needs sm_75"),
        ("ldmatrix.sync.aligned.m8n8.x8.shared.b16", "sm_80", ".x8 is no modifier"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16", "sm_90a", ".shared::cluster is no"),
        ("ldmatrix.sync.aligned.m16n16.x1.shared.b8", "sm_120a", "it needs one of .trans"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "sm_90a", "needs sm_100a"),
        (
            "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b6x16_p32",
            "sm_120a",
            ".trans does not go",
        ),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8", "sm_120a", ".m8n16 does not go"),
        ("ldmatrix.sync.aligned.x1.shared.b16", "sm_80", "it needs one of .m8n8"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16", "sm_80", "needs sm_90"),
        ("stmatrix.sync.aligned.m16n8.x1.shared.b8", "sm_120a", "it needs one of .trans"),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", "sm_90a", "needs sm_100a"),
        ("stmatrix.aligned.m8n8.x1.shared.b16", "sm_90", "it needs one of .sync"),
        ("movmatrix.sync.aligned.m8n8.b16", "sm_90", "it needs one of .trans"),
        ("movmatrix.sync.aligned.m8n8.trans.b16", "sm_70", "needs sm_75"),
    ],
)
def test_refusals_say_why(text: str, target: str, message: str) -> None:
    """By the opcode's row, else for its target."""
    found = OPCODES.find(words(text), 2)
    if found.problem:
        assert message in found.problem
        return
    with pytest.raises(FragirError, match=message):
        tensor_instruction(found.words, target)
