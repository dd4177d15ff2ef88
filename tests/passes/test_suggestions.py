"""What an error in a text adds: the name that was meant, the place of what is missing, and what a
text is that is no MLIR."""

from __future__ import annotations

import traceback

import pytest

import fragir
from fragir import compiler, f32
from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.ptx import parse as parse_ptx

RIGHT = """func.func @k(%a: memref<16x64xf32>, %c: memref<16x64xf32>) {
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<16x64xf32> -> !frag.tile<16x64xf32>
  frag.store %x, %c[%0, %0] : !frag.tile<16x64xf32>, memref<16x64xf32>
  func.return
}
"""


def error_of(text: str) -> FragirError:
    with pytest.raises(FragirError) as caught:
        compiler.parse(text, "x.mlir")
    return caught.value


def changed(before: str, after: str) -> FragirError:
    assert before in RIGHT
    return error_of(RIGHT.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "meant", "place"),
    [
        ("= frag.load", "= frag.laod", "frag.load", (3, 8)),
        ("= frag.load", "= farg.load", "frag.load", (3, 8)),
        ("arith.constant", "arith.constnat", "arith.constant", (2, 8)),
        ("= frag.load", "= load", "frag.load or ptx.load or memref.load", (3, 8)),
        ("-> !frag.tile", "-> !frag.tle", "!frag.tile", (3, 52)),
        ("-> !frag.tile", "-> #frag.tile", "!frag.tile", (3, 52)),
        ("-> !frag.tile", "-> frag.tile", "!frag.tile", (3, 52)),
        ("%a: memref<16x64xf32>", "%a: memref<16x64xfp16>", "f16", (1, 31)),
        ("%a: memref<16x64xf32>", "%a: memref<16x64xfloat>", "f32", (1, 31)),
        ("-> !frag.tile<16x64xf32>", "-> !frag.tile<16x64xbfloat16>", "bf16", (3, 69)),
        ("-> !frag.tile<16x64xf32>", "-> !frag.tile<16x64xf32, frag.mma<a>>", "#frag.mma", (3, 74)),
        ("-> !frag.tile<16x64xf32>", "-> !frag.tile<16x64xf32, #frag.ma<a>>", "#frag.mma", (3, 74)),
    ],
)
def test_the_name_that_was_meant(
    before: str, after: str, meant: str, place: tuple[int, int]
) -> None:
    error = changed(before, after)
    assert error.message.endswith(f"; did you mean {meant}?"), error.message
    assert (error.line, error.col) == place


def test_nothing_is_guessed_where_nothing_is_near() -> None:
    for name in ("frag.quux", "quux.load", "quux", "import_this"):
        assert changed("= frag.load", f"= {name}").message == f"there is no operation {name} here"


@pytest.mark.parametrize(
    ("before", "after", "place", "words"),
    [
        (" -> !frag.tile<16x64xf32>\n", " ->  // a tile\n\n", (3, 51), "type expected"),
        ("-> !frag.tile<16x64xf32>\n", "-> !frag.tile<16x64xf32\n", (3, 72), "'>' expected"),
        ("func.return\n}\n", "func.return\n  // end\n", (5, 14), "the { of line 1 is not closed"),
    ],
)
def test_a_missing_token_is_missing_where_the_text_before_ends(
    before: str, after: str, place: tuple[int, int], words: str
) -> None:
    """Not at what stands on the next line."""
    error = changed(before, after)
    assert words in error.message
    assert (error.line, error.col) == place
    assert error.source == RIGHT.replace(before, after).splitlines()[place[0] - 1]


def test_an_empty_text() -> None:
    assert error_of("  \n").message == "the text is empty"


FOREIGN = {
    "Python": ["# a kernel\nimport fragir\n", "@fragir.jit\ndef f(a):\n  pass\n", '"""Words."""\n'],
    "CUDA C++": [
        "// k\n#include <cuda_fp16.h>\n",
        "/* k\n */\n__global__ void k(float* a) {}\n",
        'extern "C" __global__ void k() {}\n',
        "template <int N>\nstruct S {};\n",
    ],
    "LLVM IR": ["; ModuleID = 'k'\n", "define void @f() {\n  ret void\n}\n"],
    "PTX": ["//\n.version 8.0\n.target sm_80\n"],
    "Triton IR": [
        "module {\n  tt.func public @k(%a: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n",
        "#b = #ttg.blocked<{order = [0]}>\nmodule {}\n",
    ],
    "StableHLO": [
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.tanh %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
    ],
}


@pytest.mark.parametrize(
    ("language", "text"), [(name, text) for name, texts in FOREIGN.items() for text in texts]
)
def test_a_text_in_another_language(language: str, text: str) -> None:
    """One sentence, which says what it is and what is read."""
    error = error_of(text)
    assert f"this is {language}, and MLIR" in error.message
    assert "is read here: " in error.message
    assert error.line is not None


@pytest.mark.parametrize(
    ("language", "text"),
    [("MLIR", RIGHT), ("MLIR", '"builtin.module"() ({}) : () -> ()')]
    + [(name, text) for name in ("Python", "CUDA C++", "LLVM IR") for text in FOREIGN[name]],
)
def test_the_same_where_ptx_is_read(language: str, text: str) -> None:
    with pytest.raises(FragirError, match="and PTX is read here: ") as caught:
        parse_ptx(text)
    assert f"this is {language}, " in caught.value.message


def test_wrong_ptx_and_mlir_are_told_as_what_they_are() -> None:
    with pytest.raises(FragirError, match="unexpected"):
        parse_ptx(".version 8.0\n.target sm_80\n.entry k( { ret; }\n")
    assert "this is" not in changed("= frag.load", "= frag.laod").message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sm80", "sm_80"),
        ("SM_80", "sm_80"),
        ("80", "sm_80"),
        ("90a", "sm_90a"),
        ("sm-90a", "sm_90a"),
        ("compute_89", "sm_89"),
        ("hopper", "sm_90a"),
        ("Ampere", "sm_80"),
        ("blackwell", "sm_100a"),
        ("H100", "sm_90a"),
        ("RTX 4090", "sm_89"),
        ("sm_91", "sm_90"),
    ],
)
def test_the_target_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(FragirError) as caught:
        require_target(name)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"did you mean {meant}? one of sm_70, ")


def test_no_target_is_near() -> None:
    with pytest.raises(FragirError) as caught:
        require_target("gfx942")
    assert str(caught.value.hint).startswith("one of sm_70")


def test_an_error_in_the_builder_has_one_traceback() -> None:
    """Which ends at the user's line: nothing of what verified the operation, no IR."""
    with fragir.kernel("k", warps=(1, 1), target="sm_80") as k:
        a = k.memory("a", f32, (64, 64))
        with pytest.raises(FragirError) as caught:
            k.load(a, (64, 0), shape=(16, 16))
        text = "".join(traceback.format_exception(caught.value))
        assert text.count("Traceback") == 1
        assert 'frag.load"' not in text
        assert text.endswith(
            "\n              k.load(a, (64, 0), shape=(16, 16))\n              ^\n"
        )
        with pytest.raises(FragirError, match="262144 registers") as caught:
            k.load(a, (0, 0), shape=(512, 512))
        assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


def test_a_target_is_judged_where_it_is_given() -> None:
    with pytest.raises(FragirError, match=r"did you mean sm_80\?") as caught:
        fragir.kernel("k", target="sm80")
    assert caught.value.file == __file__
