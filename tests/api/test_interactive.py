"""What a person meets in a notebook: names on TAB, signatures, help, values that show themselves.

No value dumps its PTX, its arrays or its tree: a `repr` is one line of about 120 characters, and
says what the value is. Long texts are `str`, pictures `_repr_svg_`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import fragir
from fragir import algebra, emulator, host, isa, judge, ptx, redundancy, reference, scheduling
from fragir.compilation.pipeline import Stage
from fragir.isa import atoms, canonical, dense, descriptors, emit, query, tensor_boxes
from fragir.isa.tensor_names import tensor_operation
from fragir.isa.wmma import wmma_fragment
from fragir.layout import (
    Layout,
    SharedLayout,
    difference,
    from_cute,
    sources,
    subtile,
    swizzle_of,
    swizzled_elements,
    to_linear,
)
from fragir.layout.planning import costs, planner, registers, report, shared, warp
from fragir.reference.bounded import bounded, exactly
from fragir.sweeps import Plan, Sweep, Task
from tests.api.test_names import LISTED, found

MOST = 130

C = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
ROWS = Layout.parse("lane [2:(0,4) 16:(1,0)] element [4:(0,1)]")
SUMS = Layout.parse("warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 8:(0,8)]")
OPERAND = Layout.parse(
    "warp [4:(16,0)] lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16) 2:(0,32)]"
)
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LONGEST = max((one.mnemonic for one in isa.instructions()), key=len)

PRODUCT = """
func.func @product(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) {
  frag.matmul %a, %b into %c : memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32>
  func.return
}
"""
CHAIN = """
func.func @chain(%x: memref<16x16xf16>, %v: memref<16x16xf16>, %w: memref<16x16xf16>,
                 %y: memref<16x16xf32>) {
  %t = memref.alloc() : memref<16x16xf16>
  linalg.matmul ins(%x, %v : memref<16x16xf16>, memref<16x16xf16>)
                outs(%t : memref<16x16xf16>)
  linalg.matmul ins(%t, %w : memref<16x16xf16>, memref<16x16xf16>)
                outs(%y : memref<16x16xf32>)
  func.return
}
"""


@functools.cache
def kernel() -> fragir.Kernel:
    return fragir.compile(PRODUCT)


@functools.cache
def program() -> Any:
    return fragir.compile(CHAIN)


@functools.cache
def run() -> emulator.Report:
    a = np.ones((16, 16), np.float16)
    return kernel()(a, a, np.zeros((16, 16), np.float32), on="emulator", check=True, fragments=True)


def built() -> dict[str, object]:
    with fragir.kernel("copy") as k:
        a = k.memory("a", fragir.f32, ("n", 64))
        scale = k.scalar("scale", fragir.f32)
        tile = k.load(a, (0, 0), shape=(16, 64))
        k.store(tile * scale, a, (0, 0))
    return {"KernelBuilder": k, "Memory": a, "Scalar": scale, "Tile": tile}


def problem() -> scheduling.GemmProblem:
    device = scheduling.device_for("sm_80")
    return scheduling.GemmProblem(
        *(256, 256, 256, "f16", "f32", "f32", False, False, "sm_80", device)
    )


def ranked() -> scheduling.Ranked:
    return scheduling.rank(problem())[0]


def finding() -> emulator.Finding:
    return emulator.Finding("race", "words " * 40, "k.ptx", 12, 5, 0, 3, subject="%r1")


def case() -> judge.Case:
    x = np.zeros(1 << 16)
    return judge.Case(judge.KernelCall("k", [x]), inputs=[x], outputs=[x], reference=np.copy)


def need() -> redundancy.NeedOf:
    return redundancy.NeedOf(12, f"mbarrier.try_wait {'x' * 200};", "needed", "race at line 14")


# Class -> one of it. What one does not meet in a notebook has its reason in ELSEWHERE.
MADE: dict[str, Callable[[], object]] = {
    "fragir.Explanation": lambda: fragir.explain_layouts(PRODUCT),
    "fragir.Kernel": kernel,
    "fragir.FragirError": lambda: fragir.FragirError("a message", "k.ptx", 1, 2, None, "a hint"),
    "fragir.Memory": lambda: built()["Memory"],
    "fragir.Scalar": lambda: built()["Scalar"],
    "fragir.Tile": lambda: built()["Tile"],
    "fragir.algebra.Values": lambda: algebra.Values.of(np.zeros((2, 3))),
    "fragir.builder.KernelBuilder": lambda: built()["KernelBuilder"],
    "fragir.emulator.Coverage": lambda: emulator.Coverage(),
    "fragir.emulator.Covered": lambda: emulator.Covered({0: 1}, frozenset(), frozenset()),
    "fragir.emulator.Finding": finding,
    "fragir.emulator.Followed": lambda: emulator.follow([]),
    "fragir.emulator.FragmentUse": lambda: run().fragments[0],
    "fragir.emulator.Im2col": lambda: emulator.Im2col((-1, -1), (-1, -1), 64, 16),
    "fragir.emulator.Opcode": lambda: emulator.Opcode("toy.add"),
    "fragir.emulator.Pointer": lambda: emulator.pointers(np.zeros(1 << 16), None),
    "fragir.emulator.Report": run,
    "fragir.emulator.Statistics": lambda: run().statistics,
    "fragir.emulator.Stream": emulator.Stream,
    "fragir.emulator.Struct": lambda: emulator.Struct({0: np.zeros(1 << 16)}),
    "fragir.emulator.Why": lambda: emulator.Why(notes=("there is no barrier in this kernel",)),
    "fragir.emulator.TensorMap": lambda: emulator.TensorMap(
        np.zeros((128, 128), np.float16), (64, 64), 128
    ),
    "fragir.host.ArenaPlan": lambda: host.first_fit([host.Lifetime(64, 0, 1)]),
    "fragir.host.LaunchStep": lambda: program().plan.launches[0],
    "fragir.host.Lifetime": lambda: host.Lifetime(64, 0, 1),
    "fragir.host.Program": program,
    "fragir.host.ProgramPlan": lambda: program().plan,
    "fragir.host.Temporary": lambda: program().plan.temporaries[0],
    "fragir.isa.Form": lambda: isa.lookup(MMA).form,
    "fragir.isa.Instruction": lambda: isa.lookup(LONGEST),
    "fragir.isa.Operand": lambda: isa.lookup(MMA).operands["a"],
    "fragir.isa.Registers": lambda: isa.lookup(MMA).operands["a"].registers,
    "fragir.isa.Table": isa.current,
    "fragir.isa.Target": lambda: isa.current().targets["sm_90a"],
    "fragir.isa.Types": lambda: isa.lookup(MMA).types,
    "fragir.isa.atoms.Repetition": lambda: atoms.repetition(
        swizzled_elements((64, 64), 16, 128), 16, "k"
    ),
    "fragir.isa.canonical.CanonicalLayout": lambda: canonical.canonical("bf16", "k", 128, 64, 64),
    "fragir.isa.dense.DenseRule": lambda: dense.RULES[0],
    "fragir.isa.descriptors.MatrixDescriptor": lambda: descriptors.decode(1 << 62, "sm_90a"),
    "fragir.isa.emit.InShared": lambda: emit.InShared("k", "mn", 128),
    "fragir.isa.query.View": lambda: query.View.of(isa.lookup(MMA), "a"),
    "fragir.isa.tensor_boxes.BoxCopies": lambda: tensor_boxes.box_copies(
        swizzled_elements((64, 64), 16, 128), 16, (64, 64), parts=2
    ),
    "fragir.isa.tensor_names.TensorMemoryCopy": lambda: tensor_operation("tcgen05.cp.128x256b"),
    "fragir.isa.tensor_names.TensorMma": lambda: tensor_operation("tcgen05.mma.m128n64k16.f16"),
    "fragir.isa.tensor_names.TensorOperand": lambda: tensor_operation(
        "tcgen05.mma.m128n64k16.f16"
    ).operand("d"),
    "fragir.isa.wmma.WmmaFragment": lambda: wmma_fragment(
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "a"
    ),
    "fragir.isa.tensor_boxes.TensorBoxes": lambda: tensor_boxes.tensor_boxes(
        swizzled_elements((64, 64), 16, 128), 16
    ),
    "fragir.layout.Axis": lambda: C.axes[0],
    "fragir.layout.Condition": lambda: Layout.parse("lane [4:(1,0)] where lane%4==1").where[0],
    "fragir.layout.Conversion": lambda: sources(SUMS, OPERAND),
    "fragir.layout.Difference": lambda: difference(C, ROWS),
    "fragir.layout.Layout": lambda: SUMS,
    "fragir.layout.LayoutChain": lambda: from_cute("Sw<3,4,3> o 0 o (8,80):(80,1)"),
    "fragir.layout.LinearLayout": lambda: to_linear(C),
    "fragir.layout.Mode": lambda: C.axes[0].modes[0],
    "fragir.layout.Part": lambda: subtile(C, (0, 0), (8, 8)),
    "fragir.layout.SharedLayout": lambda: SharedLayout(
        Layout.parse("row [16:128] col [64:2] dims (byte)"), swizzle_of(128)
    ),
    "fragir.layout.Slot": lambda: sources(C, ROWS).source(lane=1, element=3),
    "fragir.layout.Swizzle": lambda: swizzle_of(128),
    "fragir.layout.XorMode": lambda: Layout.parse("row [8:^144] dims (byte)").axes[0].modes[0],
    "fragir.layout.planning.costs.Features": costs.Features,
    "fragir.layout.planning.planner.ConversionPlan": lambda: planner.plan_conversion(
        SUMS, OPERAND, 8
    ),
    "fragir.layout.planning.registers.LayoutPair": lambda: registers.pair_of(SUMS, OPERAND, 8),
    "fragir.layout.planning.report.ConversionReport": lambda: report.report_of(
        planner.plan_conversion(SUMS, OPERAND, 8)
    ),
    "fragir.layout.planning.shared.SharedPlan": lambda: shared.shared_plan(*pair()),
    "fragir.layout.planning.warp.WarpPlan": lambda: warp.warp_plan(*pair()),
    "fragir.ptx.Module": lambda: ptx.parse(kernel().ptx),
    "fragir.reference.Bounded": lambda: bounded(np.zeros((64, 64)), np.full((64, 64), 0.5)),
    "fragir.reference.Comparison": lambda: reference.compare(
        exactly(np.zeros((8, 8))), np.ones((8, 8), np.float32), "f32"
    ),
    "fragir.judge.Case": case,
    "fragir.judge.CaseLimits": judge.CaseLimits,
    "fragir.judge.Judgement": judge.Judgement,
    "fragir.judge.KernelCall": lambda: judge.KernelCall("k", [np.zeros(1 << 16)]),
    "fragir.judge.Tools": judge.Tools,
    "fragir.judge.Reason": lambda: judge.Reason("fail", "race", "words " * 40, 0, "k.ptx", 12),
    "fragir.redundancy.NeedOf": need,
    "fragir.redundancy.NotNeeded": lambda: redundancy.NotNeeded((need(),), (0,), ("time",), 1),
    "fragir.scheduling.Configuration": lambda: ranked().candidate,
    "fragir.scheduling.Device": lambda: scheduling.device_for("sm_90a"),
    "fragir.scheduling.Estimate": lambda: ranked().estimate,
    "fragir.scheduling.GemmProblem": problem,
    "fragir.scheduling.Ranked": ranked,
    "fragir.scheduling.Traffic": lambda: scheduling.Traffic(1, 2),
    "fragir.sweeps.Plan": Plan,
    "fragir.sweeps.Sweep": lambda: Sweep(lambda plan: [], lambda task: {}),
    "fragir.sweeps.Task": lambda: Task(3, "what"),
    "fragir.compilation.pipeline.Stage": lambda: Stage("toy-fuse", lambda contents: True),
}
ELSEWHERE = {
    "errors with a text and a place, shown as such": {
        *("fragir.emulator.CheckFailure", "fragir.emulator.EmulationError"),
        *("fragir.algebra.UnknownFunctionError", "fragir.judge.BrokenCaseError"),
        *("fragir.isa.UnknownInstruction", "fragir.layout.LayoutError"),
        "fragir.ptx.PtxSyntaxError",
    },
    "a base class, or what the inside of a pass or an evaluation is given": {
        *("fragir.emulator.Hooks", "fragir.passes.lowering.lane_builder.Lanes"),
        *("fragir.passes.writer.text.KernelText", "fragir.compilation.pipeline.Contents"),
        "fragir.reference.run.Run",
        "fragir.late_dialect.LateDialect",
    },
    "open inside of a `with` only: test_blocks": {
        *("fragir.builder.Branch", "fragir.builder.Loop", "fragir.builder.While"),
    },
    "a row of numbers by name, which are what one looks for": {
        *("fragir.layout.planning.costs.Costs", "fragir.scheduling.SearchSpace"),
        *("fragir.late_dialect.Row", "fragir.judge.Judging"),
        "fragir.layout.planning.registers.RegisterColumns",
    },
}
SHOWN = {"fragir.dialects", "fragir.ptx.tree", "fragir.explain"}
"""Their classes are those of xDSL, of the syntax tree (below), and of tests/explain."""


def pair() -> tuple[Any, Any, int]:
    both = registers.pair_of(SUMS, OPERAND, 8)
    assert both is not None
    return both.source, both.target, 8


def public() -> dict[str, Any]:
    """Every public class and function by its first name."""
    named: dict[Any, str] = {}
    for module, names in LISTED.items():
        if not module.startswith(tuple(SHOWN)):
            for name in names:
                value, _ = found(module, name)
                if inspect.isclass(value) or isinstance(value, FunctionType):
                    named.setdefault(value, f"{module}.{name}")
    return {name: value for value, name in named.items()}


PUBLIC = public()


def test_every_class_is_made_or_has_a_reason() -> None:
    classes = {name for name, value in PUBLIC.items() if inspect.isclass(value)}
    reasons = {name for names in ELSEWHERE.values() for name in names}
    assert MADE.keys() | reasons == classes
    assert not MADE.keys() & reasons


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_repr_is_one_short_line(name: str) -> None:
    value = MADE[name]()
    assert isinstance(value, PUBLIC[name])
    shown = repr(value)
    # a mnemonic is not cut, and a layout is written whole: both are what one goes on with
    allowed = len(LONGEST) + 30 if name == "fragir.isa.Instruction" else MOST
    assert len(shown) <= allowed, shown
    assert "\n" not in shown
    assert " object at 0x" not in shown
    for dumped in ("array(", "b'\\x7fELF", ".version", "ld.param", "mappingproxy"):
        assert dumped not in shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (isa.lookup(MMA), [MMA, "sm_80"]),
        (isa.lookup(MMA).operands["a"], ["16 x 16 f16", "4 .b32"]),
        (query.View.of(isa.lookup(MMA), "b"), ["b of mma.sync", "16 x 8"]),
        (planner.plan_conversion(SUMS, OPERAND, 8), ["8 selp + 8 shfl + 8 prmt", "47 half cycles"]),
        (planner.plan_conversion(C, C, 16), ["nothing", "no instructions"]),
        (finding(), ["error race at k.ptx:12:5: words", "..."]),
        (bounded(np.zeros((2, 3)), np.full((2, 3), 0.25)), ["2 x 3 float64", "up to 0.25"]),
        (C.kernel, ["7 linear bits"]),
    ],
    ids=str,
)
def test_a_repr_says_what_it_is(value: object, words: list[str]) -> None:
    for word in words:
        assert word in repr(value)


def test_reprs_of_what_was_compiled_and_run() -> None:
    """Of the parts of a kernel too."""
    assert repr(kernel()).startswith("<product(a, b, c) for sm_80: ")
    assert repr(kernel().signature[0]) == "<argument a: memref<16x16xf16>>"
    assert re.fullmatch(
        r"<cubin of \d+ bytes: product \d+ registers; 0 warnings>", repr(kernel().assembled)
    )
    tree = ptx.parse(kernel().ptx)
    assert repr(tree) == "<PTX for sm_80: product; 4 items>"
    assert re.fullmatch(r"<entry product: \d+ statements>", repr(tree.functions[0]))
    assert re.fullmatch(r"<block of \d+ statements>", repr(tree.functions[0].body))
    for node in ptx.walk(tree):
        assert len(repr(node)) <= MOST, type(node)
    assert repr(tree.source) == f"<<ptx>: {len(kernel().ptx)} characters>"
    assert re.match(r"<\d+ warp instructions, [1-9]\d* on tensor cores; 0 findings", repr(run()))
    explained = fragir.explain_layouts(PRODUCT)
    assert "print it" in repr(explained)
    assert len(str(explained).splitlines()) > len(explained.tiles)
    for each in (*explained.tiles, *explained.conversions, *explained.memories):
        assert len(repr(each)) <= MOST


def test_reprs_that_are_texts_read_back() -> None:
    from fragir.layout import LinearLayout

    for value in (C, to_linear(C), swizzle_of(128)):
        names = {"Layout": Layout, "LinearLayout": LinearLayout, "Swizzle": type(swizzle_of(0))}
        assert eval(repr(value), names) == value


def test_blocks() -> None:
    with fragir.kernel("count") as k:
        total = k.memory("total", fragir.s32, (1, 1))
        with k.loop(0, 4, sum=k.constant(0, fragir.s32)) as loop:
            assert repr(loop) == "<loop of sum, open>"
            loop.sum = loop.sum + 1
        assert repr(loop) == "<loop of sum, is over>"
        assert repr(total) == "<memory total 1x1 of s32>"


# Names ------------------------------------------------------------------------------------------


def test_version() -> None:
    assert fragir.__version__ == version("fragir")


@pytest.mark.parametrize("name", ["complie", "explain_layout", "layouts", "f61"])
def test_near_names(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; there is \w+"):
        getattr(fragir, name)


def test_names_that_are_nowhere() -> None:
    with pytest.raises(AttributeError, match=r"module 'fragir' has no attribute 'zzzzz'$"):
        getattr(fragir, "zzzzz")
    assert not hasattr(fragir, "_repr_html_")


@pytest.mark.parametrize(
    "module", [name for name in LISTED if hasattr(import_module(name), "__all__")]
)
def test_dir_is_what_there_is(module: str) -> None:
    """`dir` of a package has its public names, and nothing that it imports."""
    if module.startswith("fragir.explore"):
        return
    shown = [name for name in dir(import_module(module)) if not name.startswith("__")]
    assert shown == sorted(LISTED[module])


@pytest.mark.parametrize("name", [n for n, value in PUBLIC.items() if not inspect.isclass(value)])
def test_signatures(name: str) -> None:
    """Decorated functions have those of what they do, not of the decorator."""
    signature = inspect.signature(PUBLIC[name])
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    anything = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert not kinds or kinds != anything
    assert inspect.unwrap(PUBLIC[name]).__name__ == PUBLIC[name].__name__
    assert inspect.getdoc(PUBLIC[name])


def test_completion_in_notebooks() -> None:
    """IPython and marimo ask jedi: by the value, or by the text, whose names are in the stub."""
    jedi = pytest.importorskip("jedi")
    live: Mapping[str, Any] = {"fragir": fragir, "c": C}
    interpreted = {x.name for x in jedi.Interpreter("fragir.comp", [live]).complete()}
    assert interpreted == {"compile"}
    assert {"inverse", "is_bijection"} <= {
        x.name for x in jedi.Interpreter("c.i", [live]).complete()
    }
    text = "import fragir\nfragir.explain_l"
    assert {x.name for x in jedi.Script(text).complete(2, 16)} == {"explain_layouts"}


def test_help() -> None:
    text = inspect.getdoc(fragir) or ""
    for name in ("compile", "kernel", "explain_layouts", "isa", "layout", "emulator"):
        assert f"`{name}`" in text
