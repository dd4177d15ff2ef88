"""Random chains of tile operations: loads, maps, casts, conversions, control flow, stores."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from .draws import BINARY, CASTS, NEEDS_89, Region, layouts
from .judge import divided, judge

ELEMENTS = ("f32", "f16", "bf16", "f64", "i32", "si8", "ui8", "tf32", "f8E4M3FN")
SWIZZLES = (0, 32, 64, 128)
SIZES = {"f64": 8, "f32": 4, "tf32": 4, "i32": 4, "f16": 2, "bf16": 2}


@dataclass
class Program:
    """A function as it grows: one current tile of a fixed shape."""

    draw: st.DrawFn
    rows: int
    cols: int
    warps: int
    element: str
    layout: str = ""
    tile: str = ""
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count}"

    def type(self) -> str:
        return f"!frag.tile<{self.rows}x{self.cols}x{self.element}{self.layout}>"

    def emit(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new_layout(self) -> str:
        return f', #frag.layout<"{self.draw(layouts(self.rows, self.cols, self.warps))}">'

    def memory(self, name: str, transposed: bool, masked: bool) -> str:
        """An argument that holds the tile, or less of it where masked; its type."""
        shape = [self.rows, self.cols]
        if masked:
            shape = [self.draw(st.integers(1, n + 3)) for n in shape]
        if transposed:
            shape.reverse()
        order = self.draw(st.sampled_from(["", "", "pitch", "column"]))
        layout = ""
        if order == "pitch":
            layout = f", strided<[{shape[1] + self.draw(st.sampled_from([1, 3, 8]))}, 1]>"
        elif order == "column":
            layout = f", strided<[1, {shape[0]}]>"
        type_ = f"memref<{shape[0]}x{shape[1]}x{self.element}{layout}>"
        self.arguments.append(f"%{name}: {type_}")
        return type_

    def load(self, name: str) -> str:
        """A tile from a new argument, perhaps by way of shared memory."""
        draw = self.draw
        transposed, masked = draw(st.booleans()), draw(st.booleans())
        type_ = self.memory(name, transposed, masked)
        value, source = self.fresh(), f"%{name}"
        if draw(st.booleans()):
            shape = (self.cols, self.rows) if transposed else (self.rows, self.cols)
            swizzle = draw(st.sampled_from(SWIZZLES))
            space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
            shared = f"memref<{shape[0]}x{shape[1]}x{self.element}, {space}>"
            source = f"%shared_{name}"
            self.emit(f"{source} = memref.alloc() : {shared}")
            asynchronous = draw(st.booleans())
            self.emit(
                f"frag.copy {'async ' if asynchronous else ''}%{name}[0, 0] to {source}[]"
                f"{' masked' if masked else ''} : {type_} to {shared}"
            )
            if asynchronous:
                self.emit("frag.commit")
                self.emit("frag.wait 0")
            self.emit("frag.barrier")
            type_, masked = shared, False
        words = (" transposed" if transposed else "") + (" masked" if masked else "")
        self.emit(f"{value} = frag.load {source}[0, 0]{words} : {type_} -> {self.type()}")
        return value

    def map(self, extra: list[str], fixed: bool) -> None:
        """The tile, and further tiles of its type, through random arithmetic."""
        tiles = [self.tile, *extra]
        names = [f"%e{i}" for i in range(len(tiles))]
        outside = ["%scalar"] if self.element == "f32" else []
        region = Region(self.draw, self.element, [*names, *outside])
        for _ in range(self.draw(st.integers(1, 4))):
            region.step()
        types = ", ".join([self.type()] * len(tiles))
        value = self.fresh()
        self.emit(f"{value} = frag.map {', '.join(tiles)} : {types} -> {self.type()} {{")
        self.emit("^bb0(" + ", ".join(f"{n}: {self.element}" for n in names) + "):")
        self.lines.append(region.finish())
        self.emit("}")
        self.tile = value

    def cast(self, target: str) -> None:
        before, value = self.type(), self.fresh()
        self.element = target
        self.emit(f"{value} = frag.cast {self.tile} : {before} -> {self.type()}")
        self.tile = value

    def convert(self) -> None:
        before, value = self.type(), self.fresh()
        self.layout = self.new_layout()
        self.emit(f"{value} = frag.convert {self.tile} : {before} -> {self.type()}")
        self.tile = value

    def loop(self) -> None:
        """The tile carried through a loop of a few rounds, also none."""
        value, carried = self.fresh(), self.fresh()
        outer, type_ = self.tile, self.type()
        last = self.draw(st.sampled_from(["%zero", "%one", "%three", "%count"]))
        self.emit(
            f"{value} = scf.for %i{self.count} = %zero to {last} step %one "
            f"iter_args({carried} = {outer}) -> ({type_}) {{"
        )
        self.tile = carried
        self.map([outer] if self.draw(st.booleans()) else [], True)
        self.emit(f"scf.yield {self.tile} : {type_}")
        self.emit("}")
        self.tile = value

    def branch(self) -> None:
        """One of two maps, by a number that is known at run time."""
        value, outer, type_ = self.fresh(), self.tile, self.type()
        self.emit(f"{value} = scf.if %odd -> ({type_}) {{")
        self.map([], True)
        self.emit(f"scf.yield {self.tile} : {type_}")
        self.emit("} else {")
        self.tile = outer
        if self.draw(st.booleans()):
            self.map([], True)
        self.emit(f"scf.yield {self.tile} : {type_}")
        self.emit("}")
        self.tile = value

    def store(self) -> None:
        transposed, masked = self.draw(st.booleans()), self.draw(st.booleans())
        type_ = self.memory("out", transposed, masked)
        words = (" transposed" if transposed else "") + (" masked" if masked else "")
        self.emit(f"frag.store {self.tile}, %out[0, 0]{words} : {self.type()}, {type_}")

    def text(self) -> str:
        head = [
            "  %zero = arith.constant 0 : index",
            "  %one = arith.constant 1 : index",
            "  %three = arith.constant 3 : index",
            "  %oneI = arith.constant 1 : i32",
            "  %bit = arith.andi %number, %oneI : i32",
            "  %odd = arith.cmpi eq, %bit, %oneI : i32",
        ]
        arguments = ", ".join([*self.arguments, "%scalar: f32", "%number: i32", "%count: index"])
        body = "\n".join([*head, *self.lines, "  func.return"])
        warps = f"attributes {{frag.warps = array<i64: 1, {self.warps}>}}"
        return f"func.func @tiles({arguments}) {warps} {{\n{body}\n}}\n"


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """A program and its target."""
    target = draw(st.sampled_from(["sm_75", "sm_80", "sm_90a"]))
    allowed = {"sm_75": ("f32", "f16", "f64", "i32", "si8"), "sm_80": ELEMENTS[:-1]}
    elements = allowed.get(target, ELEMENTS)
    rows, cols = (draw(st.sampled_from([8, 16, 24, 32, 48, 64])) for _ in range(2))
    warps = draw(st.sampled_from([1, 2, 4]))
    program = Program(draw, rows, cols, warps, draw(st.sampled_from(elements)))
    placed = draw(st.booleans()) or (rows * cols) % (32 * warps) != 0
    if placed:
        program.layout = program.new_layout()
    program.tile = program.load("x")
    more = [program.load("y")] if draw(st.booleans()) and program.element in BINARY else []
    for _ in range(draw(st.integers(1, 4))):
        steps: list[str] = ["cast"] * bool(CASTS.get(program.element))
        if program.element in BINARY:
            steps += ["map", "loop", "branch"]
        if placed:
            steps.append("convert")
        match draw(st.sampled_from(steps or ["none"])):
            case "cast":
                known = [
                    e
                    for e in CASTS[program.element]
                    if e in elements and (target == "sm_90a" or e not in NEEDS_89)
                ]
                if known:
                    program.cast(draw(st.sampled_from(known)))
                    more = []
            case "convert":
                program.convert()
                more = []
            case "map":
                program.map(more, True)
            case "loop":
                program.loop()
            case "branch":
                program.branch()
            case _:
                pass
    program.store()
    return program.text(), target


@divided(36, 6, program=programs(), seed=st.integers(0, 3))
def test_tiles(program: tuple[str, str], seed: int) -> None:
    text, target = program
    judge(text, target, seed=seed)
