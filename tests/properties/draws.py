"""What random programs are made of: layouts, arithmetic on elements, casts."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fragir.layout import Layout, axis


@st.composite
def layouts(draw: st.DrawFn, rows: int, cols: int, warps: int) -> Layout:
    """A layout of a rows x cols tile over 32 lanes and a power of two of warps.

    The bits of row and column are dealt out to lane, warp and element in any order; factors that
    are no powers of two go to the element. Where there are too few bits, or by chance, lanes and
    warps hold copies.
    """
    bits: list[tuple[int, tuple[int, int]]] = []
    odd: list[tuple[int, tuple[int, int]]] = []
    for extent, unit in ((rows, (1, 0)), (cols, (0, 1))):
        step = 1
        while extent % 2 == 0:
            bits.append((2, (unit[0] * step, unit[1] * step)))
            extent, step = extent // 2, step * 2
        if extent > 1:
            odd.append((extent, (unit[0] * step, unit[1] * step)))
    order = draw(st.permutations(bits))
    wanted = warps.bit_length() - 1
    lane = [*order[:5], *[(2, (0, 0))] * (5 - len(order[:5]))]
    rest = order[5:]
    copied = draw(st.integers(0, wanted))
    warp = [*rest[: wanted - copied]]
    warp += [(2, (0, 0))] * (wanted - len(warp))
    element = draw(st.permutations([*rest[wanted - copied :], *odd]))
    if draw(st.booleans()):
        element = sorted(element, key=lambda mode: (mode[1][0], mode[1][1]))
    return Layout(
        (axis("warp", *warp), axis("lane", *lane), axis("element", *element)), ("row", "col")
    )


_FLOAT_BINARY = ("addf", "subf", "mulf", "maxnumf", "minnumf")
BINARY: dict[str, tuple[str, ...]] = {
    "f32": (*_FLOAT_BINARY, "divf", "maximumf", "minimumf"),
    "f64": (*_FLOAT_BINARY, "divf"),
    "f16": (*_FLOAT_BINARY, "maximumf", "minimumf"),
    "bf16": ("addf", "subf", "mulf"),
    "i32": (
        *("addi", "subi", "muli", "andi", "ori", "xori"),
        *("minsi", "maxsi", "minui", "maxui"),
    ),
}
UNARY: dict[str, tuple[str, ...]] = {
    "f32": ("arith.negf", "math.absf", "math.exp2", "math.floor"),
    "f64": ("arith.negf", "math.absf"),
    "f16": ("arith.negf", "math.absf"),
    "bf16": (),
    "i32": ("math.absi",),
}
CASTS: dict[str, tuple[str, ...]] = {
    "f32": ("f16", "bf16", "tf32", "f64", "i32", "si8", "ui8", "f8E4M3FN", "f8E5M2"),
    "f16": ("f32", "bf16", "f64", "i32", "f8E4M3FN"),
    "bf16": ("f32", "f16"),
    "tf32": ("f32", "f16"),
    "f64": ("f32", "i32"),
    "i32": ("f32", "f64", "si8", "ui8"),
    "si8": ("i32", "f32", "f16"),
    "ui8": ("i32", "f32", "bf16"),
    "f8E4M3FN": ("f32", "f16", "bf16"),
    "f8E5M2": ("f32", "f16"),
}
NEEDS_89 = ("f8E4M3FN", "f8E5M2")


class Region:
    """Writes the body of an elementwise region, one random operation after the other."""

    def __init__(self, draw: st.DrawFn, element: str, values: Sequence[str]):
        self.draw, self.element = draw, element
        self.values = list(values)
        self.lines: list[str] = []

    def fresh(self, text: str) -> str:
        """A new value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def any(self) -> str:
        """A value that is there."""
        return self.draw(st.sampled_from(self.values))

    def step(self) -> None:
        """One more operation on values that are there."""
        element, draw = self.element, self.draw
        kinds = ["binary", "constant", "select"]
        if UNARY[element]:
            kinds.append("unary")
        if element != "i32":
            kinds.append("fma")
        else:
            kinds += ["shift", "divide"]
        match draw(st.sampled_from(kinds)):
            case "constant":
                number = draw(st.sampled_from([0, 1, -1, 3, 0.5, -2.25]))
                literal = int(number) if element == "i32" else float(number)
                value = self.fresh(f"arith.constant {literal} : {element}")
            case "unary":
                name = draw(st.sampled_from(UNARY[element]))
                value = self.fresh(f"{name} {self.any()} : {element}")
            case "fma":
                operands = ", ".join(self.any() for _ in range(3))
                value = self.fresh(f"math.fma {operands} : {element}")
            case "shift":
                name = draw(st.sampled_from(("shli", "shrui", "shrsi")))
                amount = self.fresh(f"arith.constant {draw(st.integers(0, 31))} : i32")
                value = self.fresh(f"arith.{name} {self.any()}, {amount} : i32")
            case "divide":
                name = draw(st.sampled_from(("divsi", "remsi", "divui", "remui")))
                amount = self.fresh(f"arith.constant {draw(st.integers(1, 9))} : i32")
                value = self.fresh(f"arith.{name} {self.any()}, {amount} : i32")
            case "select":
                name = "cmpi" if element == "i32" else "cmpf"
                words = ("slt", "uge", "eq") if element == "i32" else ("olt", "uge", "one", "une")
                how = draw(st.sampled_from(words))
                test = self.fresh(f"arith.{name} {how}, {self.any()}, {self.any()} : {element}")
                value = self.fresh(f"arith.select {test}, {self.any()}, {self.any()} : {element}")
            case _:
                name = draw(st.sampled_from(BINARY[element]))
                value = self.fresh(f"arith.{name} {self.any()}, {self.any()} : {element}")
        self.values.append(value)

    def finish(self) -> str:
        """The region's text; it yields the newest value."""
        self.lines.append(f"frag.yield {self.values[-1]} : {self.element}")
        return "\n".join(f"    {line}" for line in self.lines)
