"""Calls of the Python interface with bad values: a FragirError, TypeError or ValueError, soon.

Each call is right but for one argument. TypeError and ValueError may come where Python or numpy
raise them for what no function takes, never from deep inside with words of the inside.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import fragir
from fragir import emulator, isa, layout
from fragir.emulator import TensorMap
from fragir.layout import Layout
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import attempt

BAD: tuple[Any, ...] = (
    *(None, "x", "", b"x", float("nan"), float("inf"), -1, 0, 1.5, True, 10**400, -(10**30), 1j),
    *([], {}, (), object(), np.float32(1.5), np.array(3), int, [1, 2, 3, 4], (1, 2, 3, 4)),
    *(
        (0, 0, 0),
        ("a",),
        (1.5,),
        (None,),
        np.int64(7),
        2**31,
        2**64,
        "\0",
        "a" * 100_000,
        set[int](),
    ),
    *(np.zeros((2, 2)), np.zeros((0, 3)), np.array([None]), np.ma.masked_array([1.0, 2.0])),
    *(np.zeros((32, 32), np.float16)[::2], np.zeros((32, 32), ">f2"), np.zeros((4, 4), bool)),
    *(np.zeros((2, 2), complex), np.zeros((2, 2), "S3"), np.zeros((32, 32), np.float16)[::-1]),
)
PROGRAM = """func.func @gemm(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
    %b: memref<?x?xf16> {frag.sizes = ["k", "n"]}, %c: memref<?x?xf32>, %alpha: f32) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> epilogue {
  ^bb0(%s: f32, %o: f32):
    %x = arith.mulf %s, %alpha : f32
    frag.yield %x : f32
  }
  func.return
}
"""
PTX = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p){ ret; }"
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
Call = Callable[[Any], object]


@cache
def kernel() -> fragir.Kernel:
    return fragir.compile(PROGRAM)


def _arrays() -> tuple[Any, Any, Any]:
    half = np.zeros((32, 32), np.float16)
    return half, half, np.zeros((32, 32), np.float32)


def _launch(x: Any, name: str) -> object:
    a, b, c = _arrays()
    given: dict[str, Any] = {"grid": 1, "block": None, "on": "emulator", name: x}
    return kernel().launch(given.pop("grid"), given.pop("block"), a, b, c, 1.0, **given)


def _call(x: Any, at: int) -> object:
    arguments: list[Any] = [*_arrays(), 1.0]
    arguments[at] = x
    return kernel()(*arguments, on="emulator")


COMPILER: dict[str, Call] = {
    "compile": lambda x: fragir.compile(x),
    "compile target": lambda x: fragir.compile(PROGRAM, target=x),
    "compile entry": lambda x: fragir.compile(PROGRAM, entry=x),
    "parse": lambda x: fragir.parse(x),
    "parse filename": lambda x: fragir.parse("zz", x),
    "lower": lambda x: fragir.lower(x),
    "lower to": lambda x: fragir.lower(fragir.parse(PROGRAM), x),
    "lower target": lambda x: fragir.lower(fragir.parse(PROGRAM), "lane", x),
    "emit": lambda x: fragir.emit(x),
    "sizes": lambda x: kernel().sizes(x),
    "check": lambda x: kernel().check(x),
    "check m": lambda x: kernel().check({"m": x}),
    "grid": lambda x: kernel().grid(x),
    "grid m": lambda x: kernel().grid({"m": x, "n": 3}),
    "parameters": lambda x: kernel().parameters(x),
    **{f"argument {at}": partial(_call, at=at) for at in range(4)},
    **{
        f"launch {name}": partial(_launch, name=name)
        for name in ("grid", "block", "shared", "cluster", "on", "schedule", "asynchrony")
    },
}


def _constant(x: Any) -> Any:
    def constant(*_: Any) -> Any:
        return x

    return constant


def _in_kernel(x: Any, statement: Any) -> object:
    with fragir.kernel("g", warps=(2, 2)) as k:
        a = k.memory("a", fragir.f16, ("m", "k"))
        scalars = k.scalar("s", fragir.f32), k.scalar("i", fragir.index)
        tiles = k.load(a, (0, 0), shape=(32, 16)), k.fill(0.0, (32, 16), fragir.f32)
        statement(k, a, *scalars, *tiles, x)
    return k.mlir


# a: memory, s: f32, i: index, t: f16 tile, u: f32 tile of one kernel k
Statement = Callable[[Any, Any, Any, Any, Any, Any, Any], object]
STATEMENTS: dict[str, Statement] = {
    "memory name": lambda k, a, s, i, t, u, x: k.memory(x, fragir.f16, (3,)),
    "memory element": lambda k, a, s, i, t, u, x: k.memory("z", x, (3,)),
    "memory shape": lambda k, a, s, i, t, u, x: k.memory("z", fragir.f16, x),
    "memory size": lambda k, a, s, i, t, u, x: k.memory("z", fragir.f16, (x,)),
    "memory strides": lambda k, a, s, i, t, u, x: k.memory("z", fragir.f16, (3, 3), strides=x),
    "scalar type": lambda k, a, s, i, t, u, x: k.scalar("z", x),
    "size": lambda k, a, s, i, t, u, x: k.size(x),
    "divisible": lambda k, a, s, i, t, u, x: k.divisible(m=x),
    "grid": lambda k, a, s, i, t, u, x: k.grid(x),
    "block_id": lambda k, a, s, i, t, u, x: k.block_id(x),
    "shared": lambda k, a, s, i, t, u, x: k.shared(x, fragir.f16),
    "swizzle": lambda k, a, s, i, t, u, x: k.shared((8, 8), fragir.f16, swizzle=x),
    "view": lambda k, a, s, i, t, u, x: k.view(x, (0,)),
    "load": lambda k, a, s, i, t, u, x: k.load(x, (0, 0), shape=(8, 8)),
    "load at": lambda k, a, s, i, t, u, x: k.load(a, x, shape=(8, 8)),
    "load index": lambda k, a, s, i, t, u, x: k.load(a, (x, 0), shape=(8, 8)),
    "load shape": lambda k, a, s, i, t, u, x: k.load(a, (0, 0), shape=x),
    "load rows": lambda k, a, s, i, t, u, x: k.load(a, (0, 0), shape=(x, 8)),
    "load layout": lambda k, a, s, i, t, u, x: k.load(a, (0, 0), shape=(8, 8), layout=x),
    "store": lambda k, a, s, i, t, u, x: k.store(x, a, (0, 0)),
    "store into": lambda k, a, s, i, t, u, x: k.store(t, x, (0, 0)),
    "copy": lambda k, a, s, i, t, u, x: k.copy(x, (0, 0), a),
    "wait": lambda k, a, s, i, t, u, x: k.wait(x),
    "constant": lambda k, a, s, i, t, u, x: k.constant(x, fragir.f32),
    "constant f16": lambda k, a, s, i, t, u, x: k.constant(x, fragir.f16),
    "constant s32": lambda k, a, s, i, t, u, x: k.constant(x, fragir.s32),
    "constant type": lambda k, a, s, i, t, u, x: k.constant(1, x),
    "fill": lambda k, a, s, i, t, u, x: k.fill(x, (8, 8), fragir.f32),
    "mma": lambda k, a, s, i, t, u, x: k.mma(t, x, u),
    "mma using": lambda k, a, s, i, t, u, x: k.mma(t, t, u, using=x),
    "mma scales": lambda k, a, s, i, t, u, x: k.mma(t, k.convert(t, x), u, scales=x),
    "convert": lambda k, a, s, i, t, u, x: k.convert(t, x),
    "add": lambda k, a, s, i, t, u, x: u + x,
    "divide": lambda k, a, s, i, t, u, x: s / x,
    "remainder": lambda k, a, s, i, t, u, x: i % x,
    "compare": lambda k, a, s, i, t, u, x: i < x,
    "select": lambda k, a, s, i, t, u, x: k.select(i < 3, u, x),
    "map": lambda k, a, s, i, t, u, x: k.map(_constant(x), u),
    "cast": lambda k, a, s, i, t, u, x: u.cast(x),
    "named": lambda k, a, s, i, t, u, x: u.named(x),
    "loop": lambda k, a, s, i, t, u, x: k.loop(0, x).__enter__(),
    "if": lambda k, a, s, i, t, u, x: k.if_(x).__enter__(),
}
BUILDER: dict[str, Call] = {
    "kernel": lambda x: fragir.kernel(x),
    "kernel warps": lambda x: fragir.kernel("g", warps=x),
    "fragment": lambda x: fragir.fragment(x, "a"),
    "fragment operand": lambda x: fragir.fragment("m16n8k16.f16", x),
    **{name: partial(_in_kernel, statement=each) for name, each in STATEMENTS.items()},
}


def _run(x: Any, name: str) -> object:
    given: dict[str, Any] = {"arguments": [np.zeros(4)], name: x}
    return emulator.run(PTX, **given)


def _tensor_map(x: Any, name: str) -> object:
    given: dict[str, Any] = {"array": np.zeros((64, 64), np.float16), "box": (8, 8), name: x}
    return TensorMap(**given)


_TILE = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
LIBRARY: dict[str, Call] = {
    "lookup": lambda x: isa.lookup(x),
    "lookup target": lambda x: isa.lookup(MMA, target=x),
    "register": lambda x: isa.register(x),
    "compose": lambda x: layout.compose(x, _TILE),
    "inverse": lambda x: layout.inverse(x),
    "blocked": lambda x: layout.blocked(x, {"element": (1, 2), "lane": 32}),
    "blocked shares": lambda x: layout.blocked((16, 8), x),
    "blocked share": lambda x: layout.blocked((16, 8), {"lane": x}),
    "blocked order": lambda x: layout.blocked((16, 8), {"lane": 32}, x),
    "complement": lambda x: layout.complement(_TILE, x),
    "subtile": lambda x: layout.subtile(_TILE, (0, 0), x),
    "from_cute": lambda x: layout.from_cute("(4,8):(1,4)", x),
    "from_formula": lambda x: layout.from_formula(x),
    "from_formula lanes": lambda x: layout.from_formula("row = %laneid; col = i", lanes=x),
    "to_cute": lambda x: layout.to_cute(_TILE, x),
    "read_layout": lambda x: layout.read_layout(x),
    "read_layout shape": lambda x: layout.read_layout("cute:(4,8):(1,4)", x),
    "write_layout": lambda x: layout.write_layout(x),
    "write_layout notation": lambda x: layout.write_layout(_TILE, x),
    "from_ttg": lambda x: layout.from_ttg(x),
    "from_printed": lambda x: layout.from_printed(x),
    "to_ttg": lambda x: layout.to_ttg(x),
    "chained": lambda x: layout.chained(x),
    "difference": lambda x: layout.difference(_TILE, x),
    "recast": lambda x: layout.recast(_TILE, 16, x),
    "recast dim": lambda x: layout.recast(_TILE, 16, 32, x),
    "reshape": lambda x: layout.reshape(_TILE, x),
    "sublayout": lambda x: layout.sublayout(_TILE, x),
    "transpose": lambda x: layout.transpose(_TILE, dims=x),
    "coalesce": lambda x: layout.coalesce(_TILE, x),
    "max_common_vector": lambda x: layout.max_common_vector(_TILE, x),
    "partial_right_inverse": lambda x: layout.partial_right_inverse(x),
    "identity": lambda x: layout.identity(x),
    "swizzle_of": lambda x: layout.swizzle_of(x),
    "Swizzle": lambda x: layout.Swizzle(x, 4, 3),
    "conflicts": lambda x: layout.conflicts(x, 4),
    "run": lambda x: emulator.run(x),
    **{
        f"run {name}": partial(_run, name=name)
        for name in ("entry", "grid", "block", "cluster", "shared", "target", "ptxas", "schedule")
    },
    "run arguments": lambda x: emulator.run(PTX, arguments=x),
    "run argument": lambda x: emulator.run(PTX, arguments=[x]),
    "TensorMap": lambda x: TensorMap(x, (8, 8)),
    **{
        f"TensorMap {name}": partial(_tensor_map, name=name)
        for name in (
            "box",
            "swizzle",
            "strides",
            "element_strides",
            "fill",
            "kind",
            "atom",
            "im2col",
        )
    },
}
CALLS: dict[str, Call] = {
    f"{group}: {name}": call
    for group, calls in (("compiler", COMPILER), ("builder", BUILDER), ("library", LIBRARY))
    for name, call in calls.items()
}
#: What numpy says where an array stands for a truth value: clear enough.
_CLEAR = "The truth value of an array"


def _made(call: Call, value: Any) -> None:
    try:
        call(value)
    except ValueError as error:
        if _CLEAR not in str(error):
            raise


def tasks(plan: Plan) -> Sequence[Any]:
    names = sorted(CALLS)
    random.Random(plan.seed).shuffle(names)
    return names[: plan.count]


def run(task: Task) -> Result:
    """One call with every bad value."""
    findings = [
        f"{task.what} with {shown}: {trial.finding}"
        for value in BAD
        for trial in [attempt(partial(_made, CALLS[task.what], value))]
        for shown in [f"{type(value).__name__} {repr(value)[:60] if np.size(value) < 9 else ''}"]
        if trial.finding is not None
    ]
    return {"calls": len(BAD), "findings": findings}


SWEEP = Sweep(tasks, run, seconds=300.0)
