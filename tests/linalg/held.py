"""Programs with constants as torch-mlir prints them, and their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RNG = np.random.default_rng(3)

LAYERS = """#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {{
  func.func @layers(%arg0: tensor<{rows}x8xf32>) -> tensor<{rows}x6xf32> {{
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %cst_0 = arith.constant dense_resource<torch_tensor_8_24_torch.float32> : tensor<8x24xf32>
    %cst_1 = arith.constant dense_resource<torch_tensor_24_torch.float32> : tensor<24xf32>
    %cst_2 = arith.constant dense_resource<torch_tensor_24_6_torch.float32> : tensor<24x6xf32>
    {size}
    %0 = tensor.empty({given}) : tensor<{rows}x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<{rows}x24xf32>) -> tensor<{rows}x24xf32>
    %2 = linalg.matmul ins(%arg0, %cst_0 : tensor<{rows}x8xf32>, tensor<8x24xf32>) outs(%1 : tensor<{rows}x24xf32>) -> tensor<{rows}x24xf32>
    %3 = linalg.generic {{indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel"]}} ins(%cst_1, %2 : tensor<24xf32>, tensor<{rows}x24xf32>) outs(%0 : tensor<{rows}x24xf32>) {{
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %6 = arith.addf %in, %in_6 : f32
      %7 = arith.maximumf %6, %cst : f32
      linalg.yield %7 : f32
    }} -> tensor<{rows}x24xf32>
    %4 = tensor.empty({given}) : tensor<{rows}x6xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<{rows}x6xf32>) -> tensor<{rows}x6xf32>
    %8 = linalg.matmul ins(%3, %cst_2 : tensor<{rows}x24xf32>, tensor<24x6xf32>) outs(%5 : tensor<{rows}x6xf32>) -> tensor<{rows}x6xf32>
    return %8 : tensor<{rows}x6xf32>
  }}
}}

{{-#
  dialect_resources: {{
    builtin: {{
      torch_tensor_8_24_torch.float32: "{first}",
      torch_tensor_24_torch.float32: "{bias}",
      torch_tensor_24_6_torch.float32: "{second}"
    }}
  }}
#-}}
"""  # noqa: E501 - as it is printed


def resource(array: Array) -> str:
    """An array as a resource of MLIR: alignment, then its bytes."""
    return "0x04000000" + array.tobytes().hex().upper()


def weights() -> tuple[Array, Array, Array]:
    """Of `layers`: the first product's, the bias, the second product's."""
    shapes = ((8, 24), (24,), (24, 6))
    first, bias, second = (RNG.standard_normal(shape).astype(np.float32) for shape in shapes)
    return first, bias, second


def layers(held: tuple[Array, Array, Array], rows: int | None = 5) -> str:
    """Two layers with a ReLU between them; any number of rows for None."""
    first, bias, second = map(resource, held)
    size = "" if rows else "%dim = tensor.dim %arg0, %c0 : tensor<?x8xf32>"
    return LAYERS.format(
        rows=rows or "?",
        size=size,
        given="" if rows else "%dim",
        first=first,
        bias=bias,
        second=second,
    )


def answer(x: Array, held: tuple[Array, Array, Array]) -> Array:
    """What the layers give, in float64."""
    first, bias, second = (one.astype(np.float64) for one in held)
    return np.maximum(x @ first + bias, 0) @ second
