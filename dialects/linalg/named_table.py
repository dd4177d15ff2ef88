"""The table of named operations: maps by the names of their loops, and what they compute.

A row of a product has one text an operand, input by input and the output last: the loops that index
its dimensions. Rows of convolutions say the order of the loops, and in the first text what of them
indexes the image: `h*s0+kh*d0` is loop h times the first stride plus loop kh times the first
dilation. MLIR, LinalgNamedStructuredOps.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.linalg.scalar_bodies import (
    ONE,
    ElementwiseKindAttr,
    copy_element,
    one,
    pooling,
    product,
    quantized_product,
    select,
    two,
)
from fragir.dialects.linalg.structured import Meaning, NamedStructuredOp, rank_of

PRODUCTS = {
    "matmul": ("m k", "k n", "m n"),
    "matmul_transpose_a": ("k m", "k n", "m n"),
    "matmul_transpose_b": ("m k", "n k", "m n"),
    "batch_matmul": ("b m k", "b k n", "b m n"),
    "batch_matmul_transpose_a": ("b k m", "b k n", "b m n"),
    "batch_matmul_transpose_b": ("b m k", "b n k", "b m n"),
    "batch_reduce_matmul": ("b m k", "b k n", "m n"),
    "matvec": ("m k", "k", "m"),
    "vecmat": ("k", "k n", "n"),
    "batch_matvec": ("b m k", "b k", "b m"),
    "batch_vecmat": ("b k", "b k n", "b n"),
    "dot": ("k", "k", ""),
    "mmt4d": ("m k m0 k0", "n k n0 k0", "m n m0 n0"),
    "batch_mmt4d": ("b m k m0 k0", "b n k n0 k0", "b m n m0 n0"),
}
LOOPS = {"mmt4d": "m n k m0 n0 k0", "batch_mmt4d": "b m n k m0 n0 k0"}
"""The order of loops, where it is not those of the output first."""
QUANTIZED = {
    "quantized_matmul": ("m k", "k n", "", "", "m n"),
    "quantized_batch_matmul": ("b m k", "b k n", "", "", "b m n"),
}
CONVOLUTIONS = {
    "conv_1d": ("w kw", "w+kw", "kw", "w"),
    "conv_2d": ("h w kh kw", "h+kh w+kw", "kh kw", "h w"),
    "conv_3d": ("d h w kd kh kw", "d+kd h+kh w+kw", "kd kh kw", "d h w"),
    "conv_1d_nwc_wcf": ("n w f kw c", "n w*s0+kw*d0 c", "kw c f", "n w f"),
    "conv_1d_ncw_fcw": ("n f w c kw", "n c w*s0+kw*d0", "f c kw", "n f w"),
    "conv_2d_nhwc_hwcf": (
        "n h w f kh kw c",
        "n h*s0+kh*d0 w*s1+kw*d1 c",
        "kh kw c f",
        "n h w f",
    ),
    "conv_2d_nhwc_fhwc": (
        "n h w f kh kw c",
        "n h*s0+kh*d0 w*s1+kw*d1 c",
        "f kh kw c",
        "n h w f",
    ),
    "conv_2d_nchw_fchw": (
        "n f h w c kh kw",
        "n c h*s0+kh*d0 w*s1+kw*d1",
        "f c kh kw",
        "n f h w",
    ),
    "conv_2d_ngchw_fgchw": (
        "n g f h w c kh kw",
        "n g c h*s0+kh*d0 w*s1+kw*d1",
        "f g c kh kw",
        "n g f h w",
    ),
    "conv_2d_ngchw_gfchw": (
        "n g f h w c kh kw",
        "n g c h*s0+kh*d0 w*s1+kw*d1",
        "g f c kh kw",
        "n g f h w",
    ),
    "conv_2d_nhwgc_gfhwc": (
        "n h w g f kh kw c",
        "n h*s0+kh*d0 w*s1+kw*d1 g c",
        "g f kh kw c",
        "n h w g f",
    ),
    "conv_3d_ndhwc_dhwcf": (
        "n d h w f kd kh kw c",
        "n d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2 c",
        "kd kh kw c f",
        "n d h w f",
    ),
    "conv_3d_ncdhw_fcdhw": (
        "n d h w f kd kh kw c",
        "n c d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2",
        "f c kd kh kw",
        "n f d h w",
    ),
    "depthwise_conv_1d_nwc_wc": ("n w c kw", "n w*s0+kw*d0 c", "kw c", "n w c"),
    "depthwise_conv_1d_ncw_cw": ("n w c kw", "n c w*s0+kw*d0", "c kw", "n c w"),
    "depthwise_conv_2d_nhwc_hwc": (
        "n h w c kh kw",
        "n h*s0+kh*d0 w*s1+kw*d1 c",
        "kh kw c",
        "n h w c",
    ),
    "depthwise_conv_2d_nchw_chw": (
        "n h w c kh kw",
        "n c h*s0+kh*d0 w*s1+kw*d1",
        "c kh kw",
        "n c h w",
    ),
    "depthwise_conv_2d_nhwc_hwcm": (
        "n h w c m kh kw",
        "n h*s0+kh*d0 w*s1+kw*d1 c",
        "kh kw c m",
        "n h w c m",
    ),
    "depthwise_conv_1d_nwc_wcm": ("n w c m kw", "n w*s0+kw*d0 c", "kw c m", "n w c m"),
    "depthwise_conv_3d_ndhwc_dhwc": (
        "n d h w kd kh kw c",
        "n d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2 c",
        "kd kh kw c",
        "n d h w c",
    ),
    "depthwise_conv_3d_ncdhw_cdhw": (
        "n d h w kd kh kw c",
        "n c d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2",
        "c kd kh kw",
        "n c d h w",
    ),
    "depthwise_conv_3d_ndhwc_dhwcm": (
        "n d h w m kd kh kw c",
        "n d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2 c",
        "kd kh kw c m",
        "n d h w c m",
    ),
}
QUANTIZED_CONVOLUTIONS = {
    f"{name}_q": (*CONVOLUTIONS[name][:3], "", "", CONVOLUTIONS[name][3])
    for name in (
        *("conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw", "conv_2d_ngchw_gfchw"),
        *("conv_2d_nhwgc_gfhwc", "conv_3d_ndhwc_dhwcf"),
        *("depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nhwc_hwcm"),
    )
}
"""Convolutions of integers, with the zero points of image and filter."""
POOLINGS = {
    "nhwc": ("n h w c kh kw", "n h*s0+kh*d0 w*s1+kw*d1 c", "kh kw", "n h w c"),
    "nchw": ("n c h w kh kw", "n c h*s0+kh*d0 w*s1+kw*d1", "kh kw", "n c h w"),
    "nwc": ("n w c kw", "n w*s0+kw*d0 c", "kw", "n w c"),
    "ncw": ("n c w kw", "n c w*s0+kw*d0", "kw", "n c w"),
    "ndhwc": (
        "n d h w c kd kh kw",
        "n d*s0+kd*d0 h*s1+kh*d1 w*s2+kw*d2 c",
        "kd kh kw",
        "n d h w c",
    ),
}
OF_LAYOUT = {"nchw": ("sum", "max"), "ncw": ("sum", "max"), "ndhwc": ("sum", "max", "min")}
"""What there is of a layout, where that is not all."""
COMBINED = {
    "sum": ("add", False),
    "max": ("max", False),
    "max_unsigned": ("max", True),
    "min": ("min", False),
    "min_unsigned": ("min", True),
}


def _output_maps(op: NamedStructuredOp) -> list[AffineMap]:
    """Every operand is indexed as the output is; scalars by nothing."""
    rank = rank_of(op.outputs[0])
    whole, nothing = AffineMap.identity(rank), AffineMap(rank, 0, ())
    return [whole if rank_of(x) or not rank else nothing for x in op.operands]


ELEMENTWISE = {
    **{name: Meaning(1, _output_maps, one(name)) for name in ONE},
    **{name: Meaning(1, _output_maps, one(name)) for name in ("square", "reciprocal")},
    **{name: Meaning(2, _output_maps, two(name)) for name in ("add", "sub", "mul", "div")},
    "div_unsigned": Meaning(2, _output_maps, two("div"), True),
    "max": Meaning(2, _output_maps, two("max")),
    "min": Meaning(2, _output_maps, two("min")),
    "powf": Meaning(2, _output_maps, two("powf")),
    "select": Meaning(3, _output_maps, select),
    "copy": Meaning(1, _output_maps, copy_element),
}
KINDS = {
    **{name: ELEMENTWISE[name] for name in ELEMENTWISE if name not in ("max", "min", "copy")},
    "max_signed": ELEMENTWISE["max"],
    "min_signed": ELEMENTWISE["min"],
    "max_unsigned": Meaning(2, _output_maps, two("max"), True),
    "min_unsigned": Meaning(2, _output_maps, two("min"), True),
}
"""What `linalg.elementwise` may be, by its kind."""


def _fixed_maps(
    texts: Sequence[str], order: str = ""
) -> Callable[[NamedStructuredOp], list[AffineMap]]:
    """Maps by letters: the loops of the output in order, then the others, unless it is said."""
    loops = list(dict.fromkeys([*(order or texts[-1]).split(), *" ".join(texts).split()]))
    maps = [_map(text, loops, (), ()) for text in texts]
    return lambda op: maps


def _windows(row: Sequence[str]) -> Callable[[NamedStructuredOp], list[AffineMap]]:
    """Maps of a convolution, by the strides and dilations of the operation; 1 where it has none."""
    loops, *texts = row

    def maps(op: NamedStructuredOp) -> list[AffineMap]:
        strides, dilations = (
            (1, 1, 1) if given is None else tuple(int(str(x)) for x in given.iter_values())
            for given in (op.strides, op.dilations)
        )
        return [_map(text, loops.split(), _splat(strides), _splat(dilations)) for text in texts]

    return maps


def _splat(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """A splat of one number stands for all."""
    return numbers if len(numbers) > 1 else numbers * 3


def _map(
    text: str, loops: Sequence[str], strides: Sequence[int], dilations: Sequence[int]
) -> AffineMap:
    def term(words: str) -> AffineExpr:
        loop, _, factor = words.partition("*")
        found: AffineExpr = AffineExpr.dimension(loops.index(loop))
        if not factor:
            return found
        number = (strides if factor[0] == "s" else dilations)[int(factor[1:])]
        return found if number == 1 else found * number

    def expression(words: str) -> AffineExpr:
        first, *rest = words.split("+")
        found = term(first)
        for more in rest:
            found = found + term(more)
        return found

    return AffineMap(len(loops), 0, tuple(map(expression, text.split())))


def _fail_without_maps(op: NamedStructuredOp) -> list[AffineMap]:
    raise VerifyException("it has no maps of its own; write indexing_maps = [...]")


def meanings() -> dict[str, Meaning]:
    """Every named operation by its name behind `linalg.`."""
    found = {
        name: Meaning(2, _fixed_maps(row, LOOPS.get(name, "")), product)
        for name, row in PRODUCTS.items()
    }
    found |= {
        name: Meaning(4, _fixed_maps(row), quantized_product) for name, row in QUANTIZED.items()
    }
    found |= {name: Meaning(2, _windows(row), product) for name, row in CONVOLUTIONS.items()}
    found |= {
        name: Meaning(4, _windows(row), quantized_product)
        for name, row in QUANTIZED_CONVOLUTIONS.items()
    }
    for layout, row in POOLINGS.items():
        for what in OF_LAYOUT.get(layout, COMBINED):
            name, unsigned = COMBINED[what]
            found[f"pooling_{layout}_{what}"] = Meaning(2, _windows(row), pooling(name), unsigned)
    found["contract"] = Meaning(2, _fail_without_maps, product)
    return found | ELEMENTWISE


def class_name(name: str) -> str:
    """What the class of an operation is called, as `BatchMatmulOp`."""
    return "".join(part.capitalize() for part in name.split("_")) + "Op"


@cache
def _classes() -> dict[str, tuple[str, Meaning]]:
    return {class_name(name): (name, meaning) for name, meaning in meanings().items()}


@irdl_op_definition
class ElementwiseOp(NamedStructuredOp):
    """One of `KINDS` of every element."""

    name = "linalg.elementwise"
    kind = prop_def(ElementwiseKindAttr)

    @classmethod
    def meaning_of(cls, properties: Mapping[str, Attribute]) -> Meaning:
        """That of its kind."""
        kind = properties.get("kind")
        if not isinstance(kind, ElementwiseKindAttr):
            raise VerifyException("it has no kind; write kind = #linalg.elementwise_kind<exp>")
        return KINDS[kind.data]


@cache
def __getattr__(name: str) -> type[NamedStructuredOp]:
    """The class of an operation, made when it is first asked for."""
    found = _classes().get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    words, meaning = found
    made = type(
        name,
        (NamedStructuredOp,),
        {
            "name": f"linalg.{words}",
            "MEANING": meaning,
            "__annotations__": {"MEANING": ClassVar},
            "__doc__": f"`linalg.{words}`, as MLIR defines it.",
            "__module__": __name__,
        },
    )
    return irdl_op_definition(made)
