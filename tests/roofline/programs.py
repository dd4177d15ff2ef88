"""Programs of linalg whose cost is known."""

from collections.abc import Sequence


def reduction(name: str, shape: Sequence[int], kept: Sequence[int], element: str = "f32") -> str:
    """A sum over the dimensions that are not kept, in f32."""
    loops = ", ".join(f"d{d}" for d in range(len(shape)))
    result = ", ".join(f"d{d}" for d in kept)
    kinds = ", ".join('"parallel"' if d in kept else '"reduction"' for d in range(len(shape)))
    source = f"memref<{'x'.join(map(str, shape))}x{element}>"
    sums = f"memref<{''.join(f'{shape[d]}x' for d in kept)}f32>"
    wider = "" if element == "f32" else f"    %w = arith.extf %a : {element} to f32\n"
    return f"""
func.func @{name}(%x: {source}, %y: {sums}) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : {sums})
  linalg.generic {{
      indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({result})>],
      iterator_types = [{kinds}]}} ins(%x : {source}) outs(%y : {sums}) {{
  ^bb0(%a: {element}, %b: f32):
{wider}    %s = arith.addf {"%w" if wider else "%a"}, %b : f32
    linalg.yield %s : f32
  }}
  func.return
}}
"""


def named(operation: str, inputs: Sequence[str], result: str, attributes: str = "") -> str:
    """A named operation of linalg whose result begins with zeros."""
    names = [f"%{letter}" for letter in "abc"[: len(inputs)]]
    types = [f"memref<{text}>" for text in inputs]
    arguments = ", ".join(map(": ".join, zip(names, types, strict=True)))
    element = result.rpartition("x")[2]
    zero = "0.0" if element[0] in "fb" else "0"
    return f"""
func.func @f({arguments}, %y: memref<{result}>) {{
  %zero = arith.constant {zero} : {element}
  linalg.fill ins(%zero : {element}) outs(%y : memref<{result}>)
  linalg.{operation}{attributes} ins({", ".join(names)} : {", ".join(types)})
    outs(%y : memref<{result}>)
  func.return
}}
"""
