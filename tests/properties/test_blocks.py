"""Random kernels of many blocks: dynamic sizes, masks, broadcasts, nested loops, branches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .draws import Region
from .judge import divided, judge

ELEMENTS = ("f32", "f16", "bf16", "f64", "i32")


def region(draw: st.DrawFn, element: str, count: int) -> str:
    names = [f"%e{i}" for i in range(count)]
    body = Region(draw, element, names)
    for _ in range(draw(st.integers(1, 3))):
        body.step()
    head = ", ".join(f"{name}: {element}" for name in names)
    return "{\n  ^bb0(" + head + "):\n" + body.finish() + "\n  }"


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    element = draw(st.sampled_from(ELEMENTS))
    target = draw(st.sampled_from(["sm_80", "sm_90a"]))
    warps = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
    threads = 32 * warps[0] * warps[1]
    rows = draw(st.sampled_from([8, 16, 32]))
    cols = draw(st.sampled_from([n for n in (8, 16, 24, 32, 64) if rows * n % threads == 0]))
    m, n = draw(st.integers(1, 3 * rows)), draw(st.integers(1, 3 * cols))
    tile = f"!frag.tile<{rows}x{cols}x{element}>"
    matrix = f"memref<?x?x{element}>"
    kind = draw(st.sampled_from(["column", "row", "one", "scalar row"]))
    bias, names, at = {
        "column": (f"memref<?x{element}>", '["n"]', "[%col]"),
        "row": (f"memref<?x1x{element}>", '["m", "one"]', "[%row, 0]"),
        "one": (f"memref<1x1x{element}>", "[]", "[0, 0]"),
        "scalar row": (f"memref<1x?x{element}>", '["one", "n"]', "[0, %col]"),
    }[kind]
    sized = f" {{frag.sizes = {names}}}" if names != "[]" else ""
    # what is added up in the loops: tiles of the same row of blocks, from memory or by way of
    # shared memory, at an offset that is a multiple of the tile or none
    step = draw(st.sampled_from([cols, cols, 4, 1]))
    source = f"%t = frag.load %x[%row, %at] masked : {matrix} -> {tile}"
    alloc = ""
    if draw(st.booleans()):
        swizzle = draw(st.sampled_from([0, 32, 64, 128]))
        space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
        shared = f"memref<{rows}x{cols}x{element}, {space}>"
        word = draw(st.sampled_from(["", "async "]))
        alloc = f"%s = memref.alloc() : {shared}"
        source = f"""frag.barrier
      frag.copy {word}%x[%row, %at] to %s[] masked : {matrix} to {shared}
      frag.commit
      frag.wait 0
      frag.barrier
      %t = frag.load %s[0, 0] : {shared} -> {tile}"""
    inner = draw(st.booleans())
    branch = draw(st.booleans())
    update = f"""{source}
      %u = frag.map %acc, %t : {tile}, {tile} -> {tile} {region(draw, element, 2)}"""
    if inner:
        update = f"""%u = scf.for %j = %c0 to %i step %c1 iter_args(%acc = %before) -> ({tile}) {{
      {update.replace("%u", "%v")}
      scf.yield %v : {tile}
      }}"""
    finish = ""
    total = "%sum"
    if branch:
        finish = f"""%q = arith.cmpi eq, %bx, %c0 : index
  %end = scf.if %q -> ({tile}) {{
    %left = frag.map %sum, %b : {tile}, {tile} -> {tile} {region(draw, element, 2)}
    scf.yield %left : {tile}
  }} else {{
    scf.yield %sum : {tile}
  }}"""
        total = "%end"
    carried = "%before" if inner else "%acc"
    text = f"""
func.func @blocks(%x: {matrix} {{frag.sizes = ["m", "n"]}}, %bias: {bias}{sized},
                  %d: {matrix} {{frag.sizes = ["m", "n"]}})
    attributes {{frag.grid = #frag.grid<n by {cols}, m by {rows}>,
                frag.warps = array<i64: {warps[0]}, {warps[1]}>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant {draw(st.integers(0, 3))} : index
  %cr = arith.constant {rows} : index
  %cc = arith.constant {cols} : index
  %cs = arith.constant {step} : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %col = arith.muli %bx, %cc : index
  %row = arith.muli %by, %cr : index
  {alloc}
  %b = frag.load %bias{at} masked broadcast : {bias} -> {tile}
  %start = frag.load %x[%row, %col] masked : {matrix} -> {tile}
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args({carried} = %start) -> ({tile}) {{
      %at = arith.muli %i, %cs : index
      {update}
      scf.yield %u : {tile}
  }}
  {finish}
  %out = frag.map {total}, %b : {tile}, {tile} -> {tile} {region(draw, element, 2)}
  frag.store %out, %d[%row, %col] masked : {tile}, {matrix}
  func.return
}}
"""
    return text, target, {"sizes": {"m": m, "n": n}}


@divided(15, 5, program=programs(), seed=st.integers(0, 3))
def test_blocks(program: tuple[str, str, dict[str, Any]], seed: int) -> None:
    text, target, sizes = program
    judge(text, target, seed=seed, **sizes)
