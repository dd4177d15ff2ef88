"""`fragir run` where the reference knows no bound: UNJUDGED, and answers from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.errors import FragirError

Fragir = Callable[..., Any]

PROGRAM = """\
func.func @f(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
             %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
             %c: memref<?x?xf32> {frag.sizes = ["m", "n"]}, %alpha: f32) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> epilogue {
  ^bb0(%sum: f32, %old: f32):
    BODY
    frag.yield %x : f32
  }
  func.return
}
"""
SIZE = ("--size", "m=16,n=24,k=16", "--on", "emulator")


@pytest.fixture(autouse=True)
def no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator needs none, and these tests run a lot."""
    from fragir.toolchain import find

    def nothing(*_: object) -> Any:
        raise FragirError("no ptxas here")

    monkeypatch.setattr(find, "find", nothing)


@pytest.fixture(autouse=True)
def programs(in_folder: Path) -> None:
    Path("scaled.mlir").write_text(PROGRAM.replace("BODY", "%x = arith.mulf %alpha, %sum : f32"))
    # its angle is far beyond 100 pi, where the ISA gives no error
    Path("far.mlir").write_text(
        PROGRAM.replace("BODY", "%y = arith.mulf %alpha, %sum : f32 %x = math.sin %y : f32")
    )
    # what is negative is masked, and the sum itself is as uncertain as a maximum would be
    for name, mask in (("masked", "-1.0e30"), ("minus_inf", "0xFF800000")):
        Path(f"{name}.mlir").write_text(
            PROGRAM.replace(
                "BODY",
                f"""%mask = arith.constant {mask} : f32
    %zero = arith.constant 0.0 : f32
    %keep = arith.cmpf oge, %old, %zero : f32
    %kept = arith.select %keep, %old, %mask : f32
    %y = arith.subf %kept, %sum : f32
    %x = math.exp2 %y : f32""",
            )
        )


def document(fragir: Fragir, *arguments: str) -> tuple[int, Any]:
    result = fragir("run", *arguments, *SIZE, "--json")
    return result.code, json.loads(result.out)


def test_nan_is_no_pass(fragir: Fragir) -> None:
    code, found = document(fragir, "scaled.mlir", "--arg", "alpha=nan")
    assert (code, found["result"], found["mismatches"]) == (1, "UNJUDGED", 0)
    assert found["unjudged"] == 16 * 24
    assert (found["max_error"], found["bound"], found["judged_by"]) == (None, None, "bound")
    result = fragir("run", "scaled.mlir", "--arg", "alpha=nan", *SIZE)
    assert result.code == 1
    assert "384 of 384 elements" in result.out
    assert result.out.endswith("\nUNJUDGED\n")


def test_nan_in_a_row_is_judged_with_the_rest(fragir: Fragir) -> None:
    a = np.ones((16, 16), np.float16)
    a[3, 5] = np.nan
    np.save("a.npy", a)
    code, found = document(fragir, "scaled.mlir", "--arg", "a=a.npy")
    assert (code, found["result"], found["unjudged"]) == (0, "PASS", 0)


def test_nan_that_no_input_is_are_unjudged(fragir: Fragir) -> None:
    """As many as there are negative numbers; the zeros beside them are judged."""
    body = """%zero = arith.constant 0.0 : f32
    %keep = arith.cmpf oge, %old, %zero : f32
    %root = math.sqrt %sum : f32
    %x = arith.select %keep, %root, %zero : f32"""
    Path("root.mlir").write_text(PROGRAM.replace("BODY", body))
    code, found = document(fragir, "root.mlir")
    assert (code, found["result"]) == (1, "UNJUDGED")
    assert 16 * 24 / 8 < found["unjudged"] < 16 * 24 / 2
    shown = fragir("run", "root.mlir", *SIZE)
    assert f"{found['unjudged']} of 384 elements are NaN by the program" in shown.out
    share = str(found["unjudged"] / 384 + 0.01)
    assert document(fragir, "root.mlir", "--allow-unjudged", share)[0] == 0
    code, found = document(fragir, "root.mlir", "--inputs", "a=positive", "--inputs", "b=positive")
    assert (code, found["result"], found["unjudged"]) == (0, "PASS", 0)


SPD = """\
func.func @f(%a: memref<8x8xf32>, %p: memref<40xi32>, %s: memref<4x40xi32>, %c: memref<8x8xf32>) {
  %x = frag.load %a[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  frag.store %x, %c[0, 0] : !frag.tile<8x8xf32>, memref<8x8xf32>
  func.return
}
"""


def test_inputs_of_one_argument(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("spd.mlir").write_text(SPD)
    held: list[Any] = []
    from fragir.compiler import Kernel

    right = Kernel.launch

    def seen(self: Kernel, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
        held[:] = arguments
        return right(self, grid, block, *arguments, **options)

    monkeypatch.setattr(Kernel, "launch", seen)
    kinds = ("a=spd", "p=permutation", "s=sorted", "zeros")
    arguments = [word for kind in kinds for word in ("--inputs", kind)]
    assert fragir("run", "spd.mlir", "--on", "emulator", *arguments).code == 0
    a, p, s, _ = held
    assert (a == a.T).all()
    assert np.linalg.eigvalsh(a.astype(float)).min() > 0.9
    assert sorted(p) == list(range(40)) != list(p)
    assert (np.diff(s, axis=1) >= 0).all()
    assert len(set(s.flat)) > 40


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("q=spd", "there is no array q (the arrays are a, p, s, c)"),
        ("p=spd", "p is 40 of s32, no square matrix of floats"),
    ],
)
def test_inputs_that_do_not_fit(fragir: Fragir, word: str, message: str) -> None:
    Path("spd.mlir").write_text(SPD)
    result = fragir("run", "spd.mlir", "--on", "emulator", "--inputs", word)
    assert result.code == 1
    assert message in result.err


def test_infinite_results_are_judged_by_their_sign(
    fragir: Fragir, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("scaled.mlir", "--arg", "alpha=inf", "--inputs", "integers")
    code, found = document(fragir, *arguments)
    assert found["result"] == "PASS"
    from fragir.compiler import Kernel

    right = Kernel.launch

    def wrong(self: Kernel, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
        report = right(self, grid, block, *arguments, **options)
        arguments[2][3, 4] *= -1
        return report

    monkeypatch.setattr(Kernel, "launch", wrong)
    code, found = document(fragir, *arguments)
    assert (code, found["result"], found["mismatches"]) == (1, "FAIL", 1)


@pytest.mark.parametrize("program", ["masked.mlir", "minus_inf.mlir"])
def test_masked_exponents_have_bounds(fragir: Fragir, program: str) -> None:
    code, found = document(fragir, program)
    assert (code, found["result"], found["unjudged"]) == (0, "PASS", 0)


FAR = ("far.mlir", "--arg", "alpha=1000", "--inputs", "integers")


def test_a_share_is_allowed(fragir: Fragir) -> None:
    code, found = document(fragir, *FAR)
    assert (code, found["result"]) == (1, "UNJUDGED")
    share = found["unjudged"] / (16 * 24)
    assert 0.5 < share < 1
    less, more = f"{share - 0.01:.3f}", f"{share + 0.01:.3f}"
    assert document(fragir, *FAR, "--allow-unjudged", less)[0] == 1
    code, found = document(fragir, *FAR, "--allow-unjudged", more)
    assert (code, found["result"]) == (0, "PASS")


def test_answers_from_outside(fragir: Fragir) -> None:
    Path("answer.py").write_text(
        "import numpy as np\n"
        "def right(a, b, c, alpha):\n"
        "    assert a.dtype == np.float64 and type(alpha) is float\n"
        "    return np.sin(alpha * (a @ b))\n"
        "def wrong(a, b, c, alpha):\n"
        "    return np.sin(alpha * (a @ b)) + 2\n"
    )
    # sin.approx of up to 40,000 on the emulator; the answer is exact
    near = ("--rtol", "0.01")
    code, found = document(fragir, *FAR, "--expect", "c=answer:right", *near)
    assert (found["unjudged"], found["judged_by"]) == (0, "rtol 0.01")
    assert (code, found["result"]) == (0, "PASS")
    code, found = document(fragir, *FAR, "--expect", "c=answer:wrong", *near)
    assert (code, found["result"]) == (1, "FAIL")


def test_an_answer_in_a_file(fragir: Fragir) -> None:
    a, b = np.eye(16, dtype=np.float16), np.arange(16 * 24, dtype=np.float16).reshape(16, 24)
    np.save("a.npy", a)
    np.save("b.npy", b)
    np.save("c.npy", 2 * b.astype(np.float64))
    arguments = ("scaled.mlir", "--arg", "a=a.npy", "--arg", "b=b.npy", "--arg", "alpha=2")
    code, found = document(fragir, *arguments, "--expect", "c=c.npy")
    assert (code, found["result"], found["judged_by"]) == (0, "PASS", "expect")
    np.save("c.npy", 2 * b + (b == 100))
    code, found = document(fragir, *arguments, "--expect", "c=c.npy")
    assert (code, found["mismatches"]) == (1, 1)


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("d=x.npy", "--expect d: the program has no output of this name (its outputs are c)"),
        ("a=x.npy", "no output"),
        ("c=x.npy", "x.npy"),
        ("c=small.npy", "has the shape 2x2, but c 16x24"),
        ("c=nowhere:f", "cannot import nowhere"),
        ("c=math:nothing", "math has no nothing"),
        ("c=math:pi", "is no function"),
        ("c=math:sin", "math:sin raised TypeError"),
        ("c=builtins:repr", "builtins:repr raised TypeError"),
    ],
)
def test_bad_answers(fragir: Fragir, expected: str, words: str) -> None:
    np.save("small.npy", np.zeros((2, 2), np.float32))
    result = fragir("run", "scaled.mlir", *SIZE, "--expect", expected)
    assert result.code == 1
    assert words in result.err
    assert result.err.count("error:") == 1
    assert "fault" not in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rtol", "-1"),
        ("--rtol", "nan"),
        ("--rtol", "inf"),
        ("--allow-unjudged", "1.5"),
        ("--allow-unjudged", "nan"),
        ("--expect", "c"),
    ],
)
def test_wrong_usage(fragir: Fragir, arguments: tuple[str, str]) -> None:
    assert fragir("run", "scaled.mlir", *SIZE, *arguments).code == 2
