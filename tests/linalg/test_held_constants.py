"""Constants that a program holds in memory, which no caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.host import Program
from tests.linalg.held import RNG, answer, layers, resource, weights
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
MAP = "#map = affine_map<(i) -> (i)>\n"


def called(kernel: Any, *arrays: Array, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    found = np.zeros(shape, dtype)
    report = kernel(*arrays, found, on="emulator", check=True)
    assert report.findings == []
    return found


def test_weights_of_a_program() -> None:
    """They take no place among a caller's arguments, and the reference knows them."""
    held = weights()
    x = RNG.standard_normal((5, 8)).astype(np.float32)
    (found,) = judged(layers(held), ["arg0"], [x], "sm_80")
    assert np.allclose(found, answer(x, held), atol=1e-5)
    program = fragir.compile(layers(held), target="sm_80")
    assert isinstance(program, Program)
    assert repr(program).startswith("<layers(arg0, result) for sm_80: 2 launches")
    assert np.array_equal(called(program, x, shape=(5, 6)), found)
    constants = [one.name for one in program.signature if one.constant is not None]
    assert constants == ["cst", "cst2", "cst3"]
    assert program.sizes([x, found]) == {}


def test_a_caller_may_give_others() -> None:
    held, other = weights(), weights()
    x = RNG.standard_normal((5, 8)).astype(np.float32)
    program = fragir.compile(layers(held))
    found = called(program, x, *other, shape=(5, 6))
    assert np.allclose(found, answer(x, other), atol=1e-5)
    with pytest.raises(fragir.FragirError, match=r"takes 2 arguments \(arg0, result\), not 3"):
        program(x, x, found, on="emulator")


def test_two_texts_with_the_same_names() -> None:
    """Each has its own bytes under them."""
    x = RNG.standard_normal((5, 8)).astype(np.float32)
    for held in (weights(), weights()):
        found = called(fragir.compile(layers(held)), x, shape=(5, 6))
        assert np.allclose(found, answer(x, held), atol=1e-5)


@pytest.mark.parametrize("rows", [7, 16])
def test_open_sizes(rows: int) -> None:
    held = weights()
    program = fragir.compile(layers(held, None), target="sm_90a")
    x = RNG.standard_normal((rows, 8)).astype(np.float32)
    assert np.allclose(called(program, x, shape=(rows, 6)), answer(x, held), atol=1e-5)


def test_entries_that_rely_on_sizes_hold_the_same() -> None:
    text = """#map = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %c = arith.constant dense_resource<w> : tensor<24xf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %n = tensor.dim %x, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %r = linalg.generic {indexing_maps = [#map, affine_map<(i, j) -> (i)>, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<?x?xf16>, tensor<24xf16>) outs(%e : tensor<?x?xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %y = arith.addf %a, %b : f16
    linalg.yield %y : f16
  } -> tensor<?x?xf16>
  return %r : tensor<?x?xf16>
}
{-# dialect_resources: { builtin: { w: "BYTES" } } #-}"""
    c = RNG.standard_normal(24).astype(np.float16)
    kernel = fragir.compile(text.replace("BYTES", resource(c)))
    x = np.zeros((24, 16), np.float16)
    found = called(kernel, x, shape=(24, 16), dtype=np.float16)
    assert np.array_equal(found, np.repeat(c[:, None], 16, 1))
    (entry,) = kernel.second_entries
    assert entry.held is kernel.held


#: element types, numpy's, what bodies make of two elements
TYPES: dict[str, tuple[Any, str, Any]] = {
    "f16": (np.float16, "arith.addf", np.add),
    "bf16": (np.uint16, "arith.maximumf", np.maximum),  # of positive numbers, as of their bits
    "f64": (np.float64, "arith.mulf", np.multiply),
    "i8": (np.int8, "arith.xori", np.bitwise_xor),
    "i16": (np.int16, "arith.addi", np.add),
    "i32": (np.int32, "arith.muli", np.multiply),
    "i64": (np.int64, "arith.subi", np.subtract),
}


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("written", ["resource", "hexadecimal", "numbers"])
def test_types_of_elements(element: str, written: str) -> None:
    dtype, operation, meaning = TYPES[element]
    if element == "bf16":
        c, x = (RNG.integers(0, 2**14, 24).astype(np.uint16) for _ in range(2))
        numbers = [f"{code:#06x}" for code in c]
    elif np.issubdtype(dtype, np.floating):
        c, x = (RNG.standard_normal(24).astype(dtype) for _ in range(2))
        numbers = [f"{float(number):.20e}" for number in c]
    else:
        c, x = (RNG.integers(-100, 100, 24).astype(dtype) for _ in range(2))
        numbers = [str(number) for number in c]
    constant = {
        "resource": "dense_resource<c>",
        "hexadecimal": f'dense<"0x{c.tobytes().hex()}">',
        "numbers": f"dense<[{', '.join(numbers)}]>",
    }[written]
    text = f"""{MAP}func.func @f(%x: tensor<24x{element}>) -> tensor<24x{element}> {{
  %c = arith.constant {constant} : tensor<24x{element}>
  %r = {operation} %x, %c : tensor<24x{element}>
  return %r : tensor<24x{element}>
}}
{{-# dialect_resources: {{ builtin: {{ c: "{resource(c)}" }} }} #-}}"""
    (found,) = judged(text, ["x"], [x], "sm_80")
    assert np.array_equal(found.view(dtype), meaning(x, c))


@pytest.mark.parametrize("written", ["a byte each", "a bit each", "words"])
def test_conditions(written: str) -> None:
    bits = RNG.integers(0, 2, 20).astype(bool)
    packed = np.packbits(bits, bitorder="little")
    words = str(bits.tolist()).lower()
    constant = {
        "a byte each": "dense_resource<c>",
        "a bit each": f'dense<"0x{packed.tobytes().hex()}">',
        "words": f"dense<{words}>",
    }[written]
    text = f"""{MAP}func.func @f(%x: tensor<20xf32>, %y: tensor<20xf32>) -> tensor<20xf32> {{
  %c = arith.constant {constant} : tensor<20xi1>
  %e = tensor.empty() : tensor<20xf32>
  %r = linalg.generic {{indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}}
      ins(%c, %x, %y : tensor<20xi1>, tensor<20xf32>, tensor<20xf32>) outs(%e : tensor<20xf32>) {{
  ^bb0(%a: i1, %b: f32, %d: f32, %o: f32):
    %s = arith.select %a, %b, %d : f32
    linalg.yield %s : f32
  }} -> tensor<20xf32>
  return %r : tensor<20xf32>
}}
{{-# dialect_resources: {{ builtin: {{ c: "{resource(bits * np.uint8(255))}" }} }} #-}}"""
    x, y = (RNG.standard_normal(20).astype(np.float32) for _ in range(2))
    (found,) = judged(text, ["x", "y"], [x, y], "sm_80")
    assert np.array_equal(found, np.where(bits, x, y))


def test_places_in_a_table() -> None:
    """Indices, which have 64 bits in texts and 32 on the device."""
    places = RNG.permutation(30)
    text = f"""{MAP}func.func @f(%x: tensor<30xf32>) -> tensor<30xf32> {{
  %c = arith.constant dense<{places.tolist()}> : tensor<30xindex>
  %e = tensor.empty() : tensor<30xf32>
  %r = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel"]}}
      ins(%c : tensor<30xindex>) outs(%e : tensor<30xf32>) {{
  ^bb0(%a: index, %o: f32):
    %s = tensor.extract %x[%a] : tensor<30xf32>
    linalg.yield %s : f32
  }} -> tensor<30xf32>
  return %r : tensor<30xf32>
}}"""
    x = RNG.standard_normal(30).astype(np.float32)
    (found,) = judged(text, ["x"], [x], "sm_80")
    assert np.array_equal(found, x[places])


SUMMED = (
    MAP
    + """func.func @f(%x: tensor<20xf32>) -> (tensor<20xf32>, tensor<20xf32>) {
  %c = arith.constant dense_resource<c> : tensor<20xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<20xf32>) outs(%c : tensor<20xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<20xf32>
  return %r, %c : tensor<20xf32>, tensor<20xf32>
}
{-# dialect_resources: { builtin: { c: "BYTES" } } #-}"""
)


def test_nothing_is_computed_in_their_place() -> None:
    """A constant that a result starts from is copied, and may be returned."""
    c = RNG.standard_normal(20).astype(np.float32)
    text = SUMMED.replace("BYTES", resource(c))
    x = RNG.standard_normal(20).astype(np.float32)
    for found in (judged(text, ["x"], [x], "sm_80"), judged(text, ["x"], [x], "sm_80")):
        assert np.array_equal(found[0], x + c)
        assert np.array_equal(found[1], c)
    kernel = fragir.compile(text)
    for _ in range(2):
        sums, copied = np.zeros(20, np.float32), np.zeros(20, np.float32)
        kernel(x, sums, copied, on="emulator")
        assert np.array_equal(sums, x + c)
        assert np.array_equal(copied, c)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "the text has no dense_resource<c> : tensor<20xf32>; print it with its resources"),
        ("c: '0x04000000'", r"the resource c: tensor<20xf32> has 20 elements of 4 bytes, but 0"),
        ("c: '0x0400000'", "bytes are written in hexadecimal"),
        ("c: 'abc'", "bytes are written in hexadecimal, two digits each, behind 0x"),
    ],
)
def test_what_is_missing(given: str, words: str) -> None:
    text = SUMMED.replace('c: "BYTES"', given.replace("'", '"'))
    with pytest.raises(fragir.FragirError, match=words) as raised:
        fragir.compile(text)
    assert raised.value.line == 3


def test_what_other_tools_note_says_nothing() -> None:
    c = np.ones(20, np.float32)
    more = 'external_resources: { tool: { line: "x", on: true, n: 3 } }'
    text = SUMMED.replace("BYTES", resource(c)).replace(" } } #-}", f" }} }}, {more} #-}}")
    assert fragir.compile(text).name == "f"


def test_bytes_that_do_not_fit() -> None:
    text = MAP + 'func.func @f() { %c = arith.constant dense<"0x00"> : tensor<4xf32>\n return }'
    with pytest.raises(fragir.FragirError, match="4 elements of 4 bytes, but 1 bytes are given"):
        fragir.parse(text)
