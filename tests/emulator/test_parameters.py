"""Structs and pointers among the arguments, and variables by name, from Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Pointer, Struct, TensorMap, pointers, run

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
#: The tile of a map that a 64-bit parameter points to, copied out; `ADDRESS` puts it in %m.
TILE = (
    HEAD
    + """
.visible .entry k(PARAMETER, .param .u64 out) {
.shared .align 128 .b8 s[64]; .shared .align 8 .b64 bar;
.reg .b64 %m, %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
mov.u32 %r0, bar; mov.u32 %r1, s; mbarrier.init.shared.b64 [%r0], 1;
fence.proxy.async.shared::cta; ADDRESS
mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 64;
mov.u32 %r3, 4;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [%r1], [%m, {%r3}], [%r0];
W: mbarrier.try_wait.parity.shared.b64 %p, [%r0], 0; @!%p bra W;
ld.shared.u32 %r2, [%r1]; ld.param.u64 %rd2, [out]; st.global.u32 [%rd2], %r2;
ret;
}
"""
)


def tile(parameter: str, address: str, argument: object) -> int:
    out = np.zeros(1, np.uint32)
    ptx = TILE.replace("PARAMETER", parameter).replace("ADDRESS", address)
    run(ptx, block=(1,), arguments=[argument, out])
    return int(out[0])


def test_tensor_maps_everywhere() -> None:
    tiles = TensorMap(np.arange(100, 164, dtype=np.uint32), (16,))
    by_value = ".param .align 64 .b8 p[SIZE]"
    behind = ".param .u64 p"
    at = "cvta.param.u64 %m, p+OFFSET;"
    assert tile(by_value.replace("SIZE", "128"), at.replace("+OFFSET", ""), tiles) == 104
    assert tile(behind, "ld.param.u64 %m, [p];", tiles) == 104
    assert tile(behind, "ld.param.u64 %m, [p];", Pointer(tiles)) == 104
    struct = Struct({8: np.int32(1), 64: tiles})
    assert tile(by_value.replace("SIZE", "192"), at.replace("OFFSET", "64"), struct) == 104
    address = "ld.param.u64 %m, [p]; add.u64 %m, %m, 64;"
    assert tile(behind, address, Pointer(struct)) == 104
    address = "ld.param.u64 %m, [p+8]; ld.global.u64 %m, [%m];"
    nested = Struct({8: Pointer(Struct({0: Pointer(tiles)}))})
    assert tile(by_value.replace("SIZE", "16"), address, nested) == 104


#: out[t] = sum over pointers of the table of element t
SUM = (
    HEAD
    + """
.visible .entry k(.param .u64 table, .param .u32 n, .param .u64 out) {
.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .pred %p;
ld.param.u64 %rd0, [table]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
L: ld.global.u64 %rd1, [%rd0]; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.global.u32 %r3, [%rd1];
add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], 1; add.u64 %rd0, %rd0, 8; sub.u32 %r0, %r0, 1;
setp.ne.u32 %p, %r0, 0; @%p bra L;
ld.param.u64 %rd2, [out]; mad.wide.u32 %rd2, %r1, 4, %rd2; st.global.u32 [%rd2], %r2; ret;
}
"""
)


def test_arrays_of_pointers() -> None:
    """The same array twice, and one that overlaps another, are one memory here too."""
    a, b, out = np.arange(32, dtype=np.uint32), np.full(64, 100, np.uint32), np.zeros(32, np.uint32)
    table = pointers(a, b[:32], b[16:48], a)
    run(SUM, arguments=[table, 4, out], check=True)
    # in order: a, then 100; of b[16:48] half is 1 by then; a is 1
    expected = np.arange(32) + 100 + np.where(np.arange(32) < 16, 1, 100) + 1
    assert out.tolist() == expected.tolist()
    assert a.tolist() == [1] * 32
    assert b.tolist() == [1] * 48 + [100] * 16


def struct(value: object, size: int = 16) -> None:
    ptx = HEAD + f".visible .entry k(.param .align 8 .b8 s[{size}]) {{ ret; }}"
    run(ptx, arguments=[value])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Struct({0: 5}), r"at offset 0: a int does not say how many bytes"),
        (Struct({-8: None}), "nothing before a struct"),
        (Struct({0: None, 4: None}), "at offset 4: the field at 0 ends at 8"),
        (Struct({12: None}), "it ends at 20, the struct has 16"),
        (Struct({}, size=8), "the struct has 8 bytes, the parameter 16"),
        (Pointer(b"1234"), "a pointer has 8 bytes, the parameter 16"),
        (Pointer(np.zeros(3)), "not to a ndarray .an array is a pointer already"),
        (Struct({8: TensorMap(np.zeros(64, np.float32), (4,))}, 16), "ends at 136"),
        (Struct({0: np.zeros(8)[::2]}), r"argument 0 \(s\) at offset 0: the array must be C-cont"),
    ],
)
def test_refused(value: Any, words: str) -> None:
    with pytest.raises(EmulationError, match=words):
        struct(value)


def test_scalars_in_structs() -> None:
    ptx = (
        HEAD
        + """
.visible .entry k(.param .align 8 .b8 s[24], .param .u64 out) {
.reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd0, [out];
ld.param.u64 %rd1, [s]; st.global.u64 [%rd0], %rd1;
ld.param.u64 %rd1, [s+8]; st.global.u64 [%rd0+8], %rd1;
ld.param.u64 %rd1, [s+16]; st.global.u64 [%rd0+16], %rd1; ret; }
"""
    )
    out = np.zeros(24, np.uint8)
    fields = {0: np.float16(1.5), 4: np.int32(-2), 8: b"\1\2\3", 12: np.uint8(9), 16: np.float64(2)}
    run(ptx, block=(1,), arguments=[Struct(fields), out])
    made = np.zeros(1, np.dtype({"names": list("abcde"), "offsets": list(fields), "itemsize": 24,
        "formats": ["f2", "i4", "V3", "u1", "f8"]}))  # fmt: skip
    made["a"], made["b"], made["c"], made["d"], made["e"] = 1.5, -2, b"\1\2\3", 9, 2
    assert out.tobytes() == made.tobytes()


VARIABLES = (
    HEAD
    + """
.const .align 4 .u32 c[4];
.extern .const .align 4 .u32 sized_elsewhere[];
.global .align 4 .u32 g[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<3>; .reg .b32 %r<4>;
ld.param.u64 %rd0, [out]; ld.const.u32 %r0, [c+4]; ld.const.u32 %r1, [sized_elsewhere+20];
ld.global.u32 %r2, [g+8]; st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r1;
st.global.u32 [%rd0+8], %r2; st.global.u32 [g+12], 77; ret;
}
"""
)


def variables(**given: npt.NDArray[Any]) -> tuple[list[int], list[str]]:
    out = np.zeros(3, np.uint32)
    report = run(VARIABLES, block=(1,), arguments=[out], variables=given)
    return out.tolist(), report.notes


def test_variables() -> None:
    numbers = np.arange(10, 14, dtype=np.uint32)
    many = np.arange(20, 30, dtype=np.uint32)
    found, notes = variables(c=numbers, sized_elsewhere=many, g=numbers * 10)
    assert (found, notes) == ([11, 25, 120], [])
    g = np.arange(4, dtype=np.uint32)
    variables(c=numbers, sized_elsewhere=many, g=g)
    assert g.tolist() == [0, 1, 2, 77]
    g = np.arange(4, dtype=np.uint32)
    g.flags.writeable = False  # what it begins with, no more
    variables(c=numbers, sized_elsewhere=many, g=g)
    assert g.tolist() == [0, 1, 2, 3]
    assert numbers.tolist() == [10, 11, 12, 13]


def test_unset_variables() -> None:
    many = np.arange(20, 30, dtype=np.uint32)
    found, notes = variables(sized_elsewhere=many)
    assert found == [0, 25, 3]
    assert len(notes) == 1
    assert "the constant c has no initial value" in notes[0]


def test_wrong_variables() -> None:
    out = np.zeros(4, np.uint32)
    for given, words in (
        ({"d": out}, r"there is no variable d \(it has: c, sized_elsewhere, g\)"),
        ({"c": out[:3]}, "c has 16 bytes, its array 12"),
        ({"c": [1, 2, 3, 4]}, "c takes a numpy array, not a list"),
        ({"c": np.zeros(8, np.uint32)[::2]}, "c must be C-contiguous"),
        ({"g": out}, "the array of the variable g overlaps another"),
        ({"c": out, "g": np.zeros(4, np.uint32)}, "the array of the variable c overlaps another"),
    ):
        with pytest.raises(EmulationError, match=words):
            run(VARIABLES, block=(1,), arguments=[out], variables=given)
