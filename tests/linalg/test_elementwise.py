"""Elementwise generics as kernels: any maps, chains, sizes and types, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir

TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i8": np.int8}
SIZES = st.sampled_from([1, 2, 3, 5, 8, 17, 33])


def body(elements: list[str], total: str) -> str:
    """The sum of all inputs, in the output's type."""
    lines, sums = list[str](), list[str]()
    for at, element in enumerate(elements):
        name = f"%x{at}"
        if element != total:
            wide = "f" if total[0] == "f" else "si"
            if element[0] == "f" or total[0] == "i":
                lines.append(f"%w{at} = arith.ext{wide} {name} : {element} to {total}")
            else:
                lines.append(f"%w{at} = arith.sitofp {name} : {element} to {total}")
            name = f"%w{at}"
        sums.append(name)
    found = sums[0]
    for at, name in enumerate(sums[1:]):
        lines.append(f"%s{at} = arith.add{total[0]} {found}, {name} : {total}")
        found = f"%s{at}"
    return "\n    ".join([*lines, f"linalg.yield {found} : {total}"])


def map_of(dims: tuple[int, ...], rank: int) -> str:
    loops = ", ".join(f"d{d}" for d in range(rank))
    return f"affine_map<({loops}) -> ({', '.join(f'd{d}' for d in dims)})>"


def memory(dims: tuple[int, ...], sizes: list[int], static: bool, element: str) -> str:
    shape = "".join(f"{sizes[d] if static else '?'}x" for d in dims)
    return f"memref<{shape}{element}>"


def generic(
    maps: list[str], rank: int, ins: list[tuple[str, str]], out: tuple[str, str], text: str
) -> str:
    names = ", ".join(name for name, _ in ins)
    types = ", ".join(type_ for _, type_ in ins)
    loops = ", ".join(['"parallel"'] * rank)
    arguments = ", ".join(
        f"%x{at}: {type_.rpartition('x')[2].strip('<>').removeprefix('memref<')}"
        for at, (_, type_) in enumerate(ins)
    )
    last = out[1].rpartition("x")[2].strip("<>")
    return f"""  linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{loops}]}}
      ins({names} : {types}) outs({out[0]} : {out[1]}) {{
  ^bb0({arguments}, %old: {last}):
    {text}
  }}"""


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_maps(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    sizes = [data.draw(SIZES) for _ in range(rank)]
    static = data.draw(st.booleans())
    total = data.draw(st.sampled_from(["f32", "i32"]))
    narrow = ["f16", "f32", "i8"] if total == "f32" else ["i8", "i32"]
    count = data.draw(st.integers(1, 3))
    loops = tuple(range(rank))
    dims: list[tuple[int, ...]] = []
    for _ in range(count):
        used = data.draw(st.sets(st.sampled_from(loops), min_size=1))
        order = [d for d in loops if d in used]
        if len(order) > 1 and order[-2:] == list(loops[-2:]) and data.draw(st.booleans()):
            order[-2:] = order[:-3:-1]
        dims.append(tuple(order))
    elements = [data.draw(st.sampled_from(narrow)) for _ in range(count)]
    out = memory(loops, sizes, static, total)
    inputs = [memory(d, sizes, static, e) for d, e in zip(dims, elements, strict=True)]
    ins = [(f"%a{at}", type_) for at, type_ in enumerate(inputs)]
    maps = [map_of(d, rank) for d in (*dims, loops)]
    text = generic(maps, rank, ins, ("%o", out), body(elements, total))
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in (*ins, ("%o", out)))
    program = f"func.func @f({arguments}) {{\n{text}\n  func.return\n}}"
    target = data.draw(st.sampled_from(["sm_80", "sm_90a"]))
    kernel = fragir.compile(program, target=target)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [
        rng.integers(-5, 6, [sizes[d] for d in each]).astype(TYPES[e])
        for each, e in zip(dims, elements, strict=True)
    ]
    result = np.zeros(sizes, TYPES[total])
    report = kernel(*arrays, result, on="emulator", check=True)
    assert report.findings == []
    expected = np.zeros(sizes)
    for array, each in zip(arrays, dims, strict=True):
        spread = np.moveaxis(array, range(array.ndim), np.argsort(np.argsort(each)))
        shape = [sizes[d] if d in each else 1 for d in loops]
        expected = expected + spread.astype(np.float64).reshape(shape)
    assert np.array_equal(result, expected), (dims, sizes, static)


CHAIN = """
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %s = linalg.add ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %q = linalg.square ins(%s : tensor<?x?xf32>)
      outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %u = linalg.sub ins(%q, %s : tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %u : tensor<?x?xf32>
}"""


@pytest.mark.parametrize("sizes", [(0, 4), (1, 1), (37, 300), (64, 512)])
def test_a_chain_is_one_kernel(sizes: tuple[int, int]) -> None:
    """What is in between stays in registers."""
    kernel = fragir.compile(CHAIN, target="sm_80")
    assert not kernel.is_program
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, sizes).astype(np.float32) for _ in range(2))
    c = np.zeros(sizes, np.float32)
    kernel(a, b, c, on="emulator")
    total = a + b
    assert np.array_equal(c, total * total - total)
    (info,) = kernel.assembled.entries.values()
    assert info.spill_stores == 0


def test_contiguous_loops_are_one() -> None:
    """A relu of four dimensions is one of one, without masks where a tile divides it."""
    shape = "8x16x16x32"
    program = f"""
func.func @f(%a: tensor<{shape}xf16>, %o: tensor<{shape}xf16>) -> tensor<{shape}xf16> {{
  %r = linalg.negf ins(%a : tensor<{shape}xf16>)
      outs(%o : tensor<{shape}xf16>) -> tensor<{shape}xf16>
  return %r : tensor<{shape}xf16>
}}"""
    kernel = fragir.compile(program, target="sm_80")
    assert "ld.global.v4" in kernel.ptx
    assert "setp" not in kernel.ptx
    a = np.random.default_rng(0).standard_normal((8, 16, 16, 32)).astype(np.float16)
    o = np.zeros_like(a)
    kernel(a, o, on="emulator")
    assert np.array_equal(o, -a)


@pytest.mark.parametrize("sizes", [(5, 7), (33, 70), (1, 300), (64, 128)])
def test_in_place(sizes: tuple[int, int]) -> None:
    """Nobody reads an element that another thread has changed, however small the tile."""
    m, n = sizes
    program = f"""func.func @f(%a: memref<{n}x{m}xf32>, %o: memref<{m}x{n}xf32>) {{
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%a : memref<{n}x{m}xf32>) outs(%o : memref<{m}x{n}xf32>) {{
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }}
  func.return
}}"""
    rng = np.random.default_rng(0)
    a, o = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((n, m), (m, n)))
    expected = o + a.T
    report = fragir.compile(program, target="sm_80")(a, o, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(o, expected)


def run(program: str, *arrays: Any) -> Any:
    kernel = fragir.compile(program, target="sm_80")
    kernel(*arrays, on="emulator")
    return kernel


def test_a_fill_alone() -> None:
    c = np.zeros((5, 7), np.float32)
    run(
        """func.func @f(%c: memref<?x?xf32>) {
  %x = arith.constant 2.5 : f32
  linalg.fill ins(%x : f32) outs(%c : memref<?x?xf32>)
  func.return
}""",
        c,
    )
    assert (c == 2.5).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], "
            'iterator_types = ["parallel"]} ins(%v : memref<4xf32>) outs(%a : memref<4x4xf32>) {\n'
            "^bb0(%x: f32, %y: f32):\n linalg.yield %x : f32\n}",
            "writes at .d0, d0., where elements may meet",
        ),
        (
            "linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], "
            'iterator_types = ["parallel"]} outs(%l : memref<4xi24>) {\n'
            "^bb0(%x: i24):\n linalg.yield %x : i24\n}",
            "works on memref<4xi24>, of whose elements no tile is",
        ),
        (
            "linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], "
            'iterator_types = ["parallel"]} outs(%v : memref<4xf32>) {\n'
            "^bb0(%x: f32):\n memref.store %x, %n[] : memref<f32>\n linalg.yield %x : f32\n}",
            "memref.store in the body of linalg.generic, in line 4: what it stores is an output",
        ),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    program = (
        "func.func @f(%a: memref<4x4xf32>, %v: memref<4xf32>, %n: memref<f32>, "
        f"%l: memref<4xi24>) {{\n  {text}\n  func.return\n}}"
    )
    with pytest.raises(fragir.FragirError, match=words) as caught:
        fragir.compile(program)
    assert caught.value.line == 2


MASKED = """#m = affine_map<(i) -> (i)>
func.func @f(%x: memref<64xi1>, %o: memref<64xf32>, %n: memref<64xi1>) {
  linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel"]}
      ins(%x : memref<64xi1>) outs(%o, %n : memref<64xf32>, memref<64xi1>) {
  ^bb0(%a: i1, %old: f32, %was: i1):
    %r = arith.uitofp %a : i1 to f32
    %true = arith.constant true
    %not = arith.xori %a, %true : i1
    linalg.yield %r, %not : f32, i1
  }
  func.return
}"""


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8])
def test_arrays_of_bytes_of_either_kind_are_memory_of_i1(dtype: Any) -> None:
    """PyTorch's masks are bool, masks of files mostly uint8."""
    mask = (np.arange(64) % 3 == 0).astype(dtype)
    found, others = np.zeros(64, np.float32), np.zeros(64, dtype)
    built = fragir.compile(MASKED, target="sm_80")
    report = built(mask, found, others, on="emulator", check=True)
    assert report.findings == []
    assert (found == mask).all()
    assert (others == 1 - mask.astype(int)).all()
    with pytest.raises(fragir.FragirError, match="x holds uint16, the kernel takes int8"):
        built(mask.astype(np.uint16), found, others, on="emulator")


def test_one_result_behind_an_arrow_takes_no_parentheses() -> None:
    texts = [
        f"""func.func @f(%x: f32, %o: memref<4xf32>) {{
          %zero = arith.constant 0.0 : f32
          %c = arith.cmpf ogt, %x, %zero : f32
          %r = scf.if %c -> {result} {{
            scf.yield %x : f32
          }} else {{
            %y = arith.negf %x : f32
            scf.yield %y : f32
          }}
          %t = frag.fill %r : !frag.tile<4xf32>
          frag.store %t, %o[0] : !frag.tile<4xf32>, memref<4xf32>
          func.return
        }}"""
        for result in ("f32", "(f32)")
    ]
    assert len({fragir.compile(text, target="sm_80").ptx for text in texts}) == 1


def test_without_loops() -> None:
    n, o = np.asarray(2.5, np.float32), np.zeros((), np.float32)
    run(
        """func.func @f(%n: memref<f32>, %o: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
                  iterator_types = []} ins(%n : memref<f32>) outs(%o : memref<f32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  }
  func.return
}""",
        n,
        o,
    )
    assert o == 5
