"""Programs with one operation of linalg each, as MLIR prints them: every row of the table, and the
forms that have a syntax of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fragir.dialects.linalg import named_table as table

SIZES = {
    "b": 3, "m": 32, "n": 48, "k": 64, "m0": 4, "n0": 8, "k0": 2, "h": 5, "w": 6, "d": 4,
    "kh": 3, "kw": 2, "kd": 2, "c": 8, "f": 16, "g": 2,
}  # fmt: skip
STRIDE, DILATION = 2, 3


class Form(NamedTuple):
    """A program, and what its operation is called."""

    name: str
    text: str


def extent(words: str) -> int:
    """The size of a dimension that loops index so."""
    last = 0
    for term in words.split("+"):
        loop, _, factor = term.partition("*")
        by = {"": 1, "s": STRIDE, "d": DILATION}[factor[:1]]
        last += (SIZES[loop] - 1) * by
    return last + 1


def shape(words: str) -> list[int]:
    return [extent(each) for each in words.split()]


def tensor(sizes: list[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


def program(operation: str, types: list[str], output: str) -> str:
    """A function whose last argument is the output."""
    names = [*(f"%x{at}" for at in range(len(types))), "%o"]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, [*types, output], strict=True))
    ins = f"ins({', '.join(names[:-1])} : {', '.join(types)})"
    return f"""func.func @main({arguments}) -> {output} {{
  %r = {operation.format(ins=ins, outs=f"outs(%o : {output})")}
  return %r : {output}
}}"""


def structured(name: str, words: str, texts: tuple[str, ...], elements: tuple[str, ...]) -> Form:
    """A named operation on tensors of these elements, the output's last."""
    types = [
        tensor(shape(text), element) if text or at == len(texts) - 1 else element
        for at, (text, element) in enumerate(zip(texts, elements, strict=True))
    ]
    operation = f"linalg.{name} {words}{{ins}} {{outs}} -> {types[-1]}"
    return Form(name, program(operation, types[:-1], types[-1]))


def products() -> Iterator[Form]:
    for name, row in table.PRODUCTS.items():
        yield structured(name, "", row, ("f16", "f16", "f32"))
        yield structured(name, "", row, ("i8", "i8", "i32"))
    for name, row in table.QUANTIZED.items():
        yield structured(name, "", row, ("i8", "i8", "i32", "i32", "i32"))
    yield structured(
        "matmul",
        "{{cast = #linalg.type_fn<cast_unsigned>}} ",
        table.PRODUCTS["matmul"],
        ("i8", "i8", "i32"),
    )


def windows() -> Iterator[Form]:
    rows = {name: (row, ("f16", "f16", "f32")) for name, row in table.CONVOLUTIONS.items()}
    rows |= {
        name: (row, ("i8", "i8", "i32", "i32", "i32"))
        for name, row in table.QUANTIZED_CONVOLUTIONS.items()
    }
    for layout, row in table.POOLINGS.items():
        for what in table.OF_LAYOUT.get(layout, table.COMBINED):
            element = "i32" if what.endswith("unsigned") else "f32"
            rows[f"pooling_{layout}_{what}"] = row, (element, element, element)
    for name, (row, elements) in rows.items():
        _, *texts = row
        rank = sum("*s" in each for each in texts[0].split())
        words = (
            ""
            if not rank
            else (
                f"{{{{dilations = dense<{DILATION}> : tensor<{rank}xi64>, "
                f"strides = dense<{STRIDE}> : tensor<{rank}xi64>}}}} "
            )
        )
        yield structured(name, words, tuple(texts), elements)


def elementwise() -> Iterator[Form]:
    for name, meaning in table.ELEMENTWISE.items():
        if name == "select":
            yield structured(name, "", ("m n",) * 4, ("i1", "f32", "f32", "f32"))
            continue
        element = "i32" if name.endswith("unsigned") else "f32"
        count = meaning.inputs + 1
        yield structured(name, "", ("m n",) * count, (element,) * count)


def others() -> Iterator[Form]:
    a, b = "tensor<32x48xf32>", "tensor<48x32xf32>"
    yield Form(
        "contract",
        "#l = affine_map<(b, m, n, k) -> (b, m, k)>\n#r = affine_map<(b, m, n, k) -> (b, n, k)>\n"
        "#o = affine_map<(b, m, n, k) -> (b, m, n)>\n"
        + program(
            "linalg.contract indexing_maps = [#l, #r, #o] {ins} {outs} -> tensor<3x32x48xf32>",
            ["tensor<3x32x64xf16>", "tensor<3x48x64xf16>"],
            "tensor<3x32x48xf32>",
        ),
    )
    for kind in sorted(table.KINDS):
        count = table.KINDS[kind].inputs
        element = "i32" if kind.endswith("unsigned") else "f32"
        type_ = f"tensor<32x48x{element}>"
        types = [type_] * count
        if kind == "select":
            types[0] = "tensor<32x48xi1>"
        yield Form(
            f"elementwise {kind}",
            program(
                f"linalg.elementwise kind=#linalg.elementwise_kind<{kind}> {{ins}} {{outs}} "
                f"-> {type_}",
                types,
                type_,
            ),
        )
    yield Form("softmax", program(f"linalg.softmax dimension(1) {{ins}} {{outs}} -> {a}", [a], a))
    yield Form("transpose", program("linalg.transpose {ins} {outs} permutation = [1, 0]", [a], b))
    yield Form(
        "broadcast",
        program("linalg.broadcast {ins} {outs} dimensions = [1]", ["tensor<32xf32>"], a),
    )
    yield Form(
        "reduce short",
        program(
            "linalg.reduce {{ arith.addf }} {ins} {outs} dimensions = [1]", [a], "tensor<32xf32>"
        ),
    )
    yield Form(
        "reduce",
        program(
            "linalg.reduce {ins} {outs} dimensions = [0] (%x: f32, %old: f32) {{\n"
            "    %t = arith.maximumf %x, %old : f32\n    linalg.yield %t : f32\n  }}",
            [a],
            "tensor<48xf32>",
        ),
    )
    yield Form("map short", program("linalg.map {{ arith.mulf }} {ins} {outs}", [a, a], a))
    yield Form(
        "map",
        program(
            "linalg.map {ins} {outs} (%x: f32, %y: f32) {{\n"
            "    %t = arith.subf %x, %y : f32\n    linalg.yield %t : f32\n  }}",
            [a, a],
            a,
        ),
    )


def forms() -> list[Form]:
    """All of them."""
    return [*products(), *windows(), *elementwise(), *others()]
