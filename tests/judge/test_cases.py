"""Cases: sizes that are proposed, memory that arrays share, several kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragir.emulator import Pointer, Struct, TensorMap
from fragir.errors import FragirError
from fragir.judge import Case, Judgement, Judging, KernelCall, judge, sizes
from fragir.judge.case import typed, untried
from fragir.judge.shipping import pack_case, unpack_case

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


# -- sizes -----------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(1, 5))
def test_the_sizes_leave_nothing_untried(tile: int, stages: int) -> None:
    found = sizes(tile, stages)
    assert untried([(size, tile, stages) for size in found]) == {}
    kinds = untried([])
    assert kinds == {}
    left = untried([(found[0], tile, stages)])
    assert untried([(size, tile, stages) for size in (found[0], *left.values())]) == {}


def test_what_is_untried() -> None:
    assert untried([(64, 64)]) == {
        "1": 1,
        "less than a tile": 63,
        "one more than a tile": 65,
        "several tiles": 128,
        "several tiles and a rest": 161,
        "more than the stages hold": 65,
    }
    assert "more than the stages hold" in untried([(n, 64, 3) for n in sizes(64)])


# -- what a case may be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "element"),
    [
        (np.zeros(3, np.float16), "f16"),
        (np.zeros(3, ml_dtypes.bfloat16), "bf16"),
        (np.zeros(3, ml_dtypes.float8_e4m3fn), "e4m3"),
        ((np.zeros(3, np.uint16), "bf16"), "bf16"),
        (np.zeros(3, np.int8), "s8"),
    ],
)
def test_types_of_elements(array: Any, element: str) -> None:
    assert typed(array)[1] == element


def test_what_is_no_case() -> None:
    x = np.zeros(3, np.float32)
    call = KernelCall("k", [x])
    for wrong, words in (
        (lambda: Case(call, [x], [(x, "bf16")], np.copy), "cannot hold bf16"),
        (lambda: Case(call, [x], [(x, "float")], np.copy), "no type of elements"),
        (lambda: Case(call, [np.zeros(3, complex)], [x], np.copy), "no type in PTX"),
        (lambda: Case(call, [x], [x], np.copy, working="f8"), "working is one of"),
        (lambda: Case(call, [x], [x], np.copy, rounding="up"), "rounding is any or nearest"),
        (lambda: Case(call, [x], [x], np.copy, rtol=2.0), "rtol"),
        (lambda: Case(call, [x], [x], np.copy, tiles={"n": (1,)}), "tiles of n"),
        (lambda: KernelCall("k", [x], grid=(1, 2, 3, 4)), "grid"),
        (lambda: KernelCall("k", [x], shared=-1), "shared"),
    ):
        with pytest.raises(FragirError, match=words):
            wrong()


# -- files -----------------------------------------------------------------------------------------


def test_arrays_keep_what_they_share(tmp_path: Path) -> None:
    memory = np.arange(60, dtype=np.float32).reshape(6, 10)
    left, right = memory[:, :4], memory[:, 4:]
    loose = np.arange(3, dtype=np.int16)
    tensor_map = TensorMap(memory, (2, 4), strides=(40, 4), fill="nan")
    pointer = Pointer(Struct({0: loose, 8: np.int32(7)}))
    scalars = [3, 2.5, np.float16(0.5), None, b"\1\2", ml_dtypes.bfloat16(1.0)]
    arguments = [memory, tensor_map, pointer, pointer, *scalars]
    case = Case(KernelCall("k", arguments), [left], [right], np.copy, structure=[loose])
    document = pack_case(case, tmp_path, "c")
    found = unpack_case(json.loads(json.dumps(document)), tmp_path)
    assert len(found.roots) == 2
    roots = found.memory()
    first, second = (found.views[n].of(roots) for n, _ in (*found.inputs, *found.outputs))
    assert (first == left).all()
    assert (second == right).all()
    whole: Any
    whole, again, one, other, *rest = found.arguments(found.calls[0], roots)
    assert isinstance(again, TensorMap)
    assert (again.box, again.fill, again.strides) == ((2, 4), "nan", (40, 4))
    second[:] = -1
    assert (whole[:, 4:] == -1).all()
    assert np.shares_memory(again.array, whole)
    assert one is other
    assert isinstance(one, Pointer)
    assert isinstance(one.to, Struct)
    assert one.to.fields[8] == 7
    assert rest == [3, 2.5, np.float16(0.5), None, b"\1\2", b"\x80\x3f"]
    assert found.memory()[0].tobytes() == memory.tobytes()


# -- several kernels, and kinds of arrays ----------------------------------------------------------

TWO = f"""{HEAD}
.visible .entry halves(.param .u64 x, .param .u64 part)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [part];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f2, [%rd4+128];
    add.f32 %f3, %f1, %f2;
    add.u64 %rd5, %rd2, %rd3;
    st.global.f32 [%rd5], %f3;
    ret;
}}
.visible .entry square(.param .u64 part, .param .u64 y)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [part];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    mul.f32 %f1, %f1, %f1;
    add.u64 %rd5, %rd2, %rd3;
    st.global.f32 [%rd5], %f1;
    ret;
}}
"""
ADD = f"""{HEAD}
.visible .entry add(.param .u64 x, .param .u64 y)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    ld.global.u32 %r3, [%rd5];
    add.u32 %r3, %r3, %r2;
    st.global.u32 [%rd5], %r3;
    ret;
}}
"""
GATHER = f"""{HEAD}
.visible .entry gather(.param .u64 x, .param .u64 places, .param .u64 y)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .f32 %f<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [places];
    ld.param.u64 %rd3, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd5, %rd2, %rd4;
    ld.global.u32 %r2, [%rd5];
    mul.wide.u32 %rd6, %r2, 4;
    add.u64 %rd6, %rd1, %rd6;
    ld.global.f32 %f1, [%rd6];
    add.u64 %rd7, %rd3, %rd4;
    st.global.f32 [%rd7], %f1;
    ret;
}}
"""
CASES = """
import numpy as np
from fragir.judge import Case, KernelCall
def two(rng):
    x = rng.normal(size=(2, 32)).astype("f4")
    part, y = np.zeros(32, "f4"), np.zeros(32, "f4")
    calls = [KernelCall("halves", [x, part]), KernelCall("square", [part, y])]
    yield Case(calls, [x], [y], lambda x: (x[0] + x[1]) ** 2)
def one(rng):
    x = rng.normal(size=(2, 32)).astype("f4")
    part, y = np.zeros(32, "f4"), np.zeros(32, "f4")
    yield Case(KernelCall("halves", [x, part]), [x], [part], lambda x: x[0] + x[1])
def added(rng):
    x, y = rng.integers(-2**31, 2**31, (2, 32)).astype("i4")
    x, y = x.copy(), y.copy()
    yield Case(KernelCall("add", [x, y]), [x, y], [y], lambda x, y: x + y)
def beside(rng):
    x = rng.integers(0, 9, 32).astype("i4")
    whole = np.zeros(64, "i4")
    y = whole[:16]
    yield Case(KernelCall("add", [x, whole]), [x, y], [y], lambda x, y: x[:16] + y)
def unknown(rng, **more):
    x = rng.normal(size=(2, 32)).astype("f4")
    part = np.zeros(32, "f4")
    reference = lambda x: np.polynomial.polynomial.polyval(1.0, np.array([x[0], x[1]]))
    yield Case(KernelCall("halves", [x, part]), [x], [part], reference, **more)
def gathered(rng, part=False):
    x, y = rng.normal(size=40).astype("f4"), np.zeros(32, "f4")
    places = rng.integers(0, 40, 32).astype("u4")
    call = KernelCall("gather", [x, places, y])
    structure = [places] if part else []
    yield Case(call, [x, places], [y], lambda x, places: x[places], structure=structure)
def gathered_by_structure(rng):
    yield from gathered(rng, True)
def tolerated(rng):
    yield from unknown(rng, rtol=1e-6)
"""


@pytest.fixture
def judged(tmp_path: Path) -> Callable[[str, str], Judgement]:
    def judged(text: str, name: str, **how: Any) -> Judgement:
        path = tmp_path / "cases_of_test.py"
        path.write_text(CASES)
        return judge(text, f"{path}:{name}", Judging(jobs=1, **how))

    return judged


Judged = Callable[..., Judgement]


def test_kernels_one_after_the_other(judged: Judged) -> None:
    verdict = judged(TWO, "two")
    assert verdict.word == "pass", verdict.reasons
    assert [one.entry for one in verdict.launches] == ["halves", "square"]
    assert verdict.unlaunched == []
    wrong = judged(TWO.replace("mul.f32 %f1, %f1, %f1", "add.f32 %f1, %f1, %f1"), "two")
    assert wrong.word == "fail"


def test_a_kernel_that_was_not_launched(judged: Judged) -> None:
    assert judged(TWO, "one").unlaunched == ["square"]
    verdict = judged(TWO, "one", strict=True)
    assert verdict.word == "incomplete"
    assert "square was not launched" in [reason.message for reason in verdict.reasons]


def test_integers_and_arrays_that_are_both(judged: Judged) -> None:
    assert judged(ADD, "added").word == "pass"
    wrong = judged(ADD.replace("add.u32 %r3, %r3, %r2", "add.sat.s32 %r3, %r3, %r2"), "added")
    assert wrong.word == "fail"


def test_memory_beside_an_output(judged: Judged) -> None:
    verdict = judged(ADD, "beside")
    assert [reason.kind for reason in verdict.reasons] == ["modified"]
    assert "between or beside" in verdict.reasons[0].message


def test_functions_of_which_no_bound_is_known(judged: Judged) -> None:
    verdict = judged(TWO, "unknown")
    assert verdict.word == "incomplete"
    assert [reason.kind for reason in verdict.reasons] == ["undecided"]
    assert verdict.equality == "not decided"
    assert judged(TWO, "tolerated").word == "pass"
    wrong = TWO.replace("add.f32 %f3, %f1, %f2", "sub.f32 %f3, %f1, %f2")
    assert judged(wrong, "tolerated").word == "fail"
    assert judged(wrong, "unknown").word == "fail"


def test_what_depends_on_data(judged: Judged) -> None:
    verdict = judged(GATHER, "gathered")
    assert (verdict.word, verdict.equality) == ("pass", "exact (2^-60)")
    line = 1 + GATHER[: GATHER.index("ld.global.f32")].count("\n")
    opened = {"line": line, "what": "an address", "argument": "places"}
    assert verdict.document()["data"] == {"these": True, "open": [opened]}
    for declared in (
        judged(GATHER, "gathered", structure=(1,)),
        judged(GATHER, "gathered_by_structure"),
    ):
        assert declared.document()["data"] == "every value"
        assert declared.document()["structure"] == ["places"]
