"""Products through every road of passes: types, orders of A and B, epilogues, clusters, odd sizes,
sums in parts, batches.

A grid of `frag.matmul` with its schedule said: one role with copies by threads, or a role that
fetches by TMA beside one that multiplies, or two that do by turns, alone or in clusters of two
blocks; sums of floats also with scales, those of several matrices too. Each is run on small whole
numbers, so that the answer is exact, under three schedules of the emulator with every check, and
assembled: no spills, nothing that ptxas has to say of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import fragir
from benchmarks.sweeps.pipeline_scales import SCALES, WORDS, Scale, leading, written
from benchmarks.sweeps.pipeline_scales import numbers as scale_numbers
from fragir.errors import FragirError
from fragir.reference.formats import decode, encode
from fragir.sweeps import Plan, Result, Sweep, Task

SUMS = {"si8": "i32", "ui8": "i32", "f64": "f64"}
OUTS = {"f16": ("f16",), "bf16": ("bf16",), "f8E4M3FN": ("bf16", "f8E4M3FN")}
"""What C may be beside what sums are."""
ARRAYS: dict[str, Any] = {"i32": np.int32, "f32": np.float32, "f64": np.float64}
NAMES = {"si8": "s8", "ui8": "u8", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
ELEMENTS = ("f16", "bf16", "tf32", "f8E4M3FN", "si8", "f64")
ORDERS = ((False, False), (False, True), (True, False), (True, True))
EPILOGUES = ("none", "old", "bias")
SIZES = ((128, 128, 128), (200, 136, 80), (64, 272, 48), (16, 16, 16), (130, 250, 0))
ROLES = (
    "",
    "roles",
    "roles, cluster = 2 : i64",
    "roles, consumers = 2 : i64",
    "roles, consumers = 2 : i64, cluster = 2 : i64",
)
PARTS = ("", "split_k = 2 : i64", "stream_k = 3 : i64", "split_k = 3 : i64", "stream_k = 2 : i64")
BATCHES = ("", "abcxy", "bcy", "ac", "groups", "abcx", "groupsxy")
"""Which of A, B, C, and of the scales of A, x, and B, y, are of several matrices; or A and C of
groups of rows."""
GROUPS = (0.3, 0.3, 0.31, 0.9)
"""Where groups of rows end, of all rows."""
BATCH = (2, 2)
TILE = 16
"""At least so many rows and columns has a tile of C."""
TARGETS = ("sm_90a", "sm_80", "sm_120a")


class Config(NamedTuple):
    """One product."""

    target: str
    schedule: str
    element: str
    turned: tuple[bool, bool]
    epilogue: str
    sizes: tuple[int, int, int]
    static: bool
    out: str = ""
    """The type of C; that of sums unless given."""
    scales: str = ""
    """Those of A and B, as `pipeline_scales.SCALES` names them."""
    parts: str = ""
    through: bool = True
    """Whether parts of sums go through memory, else they are added to C."""
    batch: str = ""
    groups: bool = False


def grid() -> Iterator[Config]:
    """All products, in an order in which a prefix has some of everything."""
    every = product(TARGETS, ROLES, ELEMENTS, ORDERS, EPILOGUES, SIZES, (True, False))
    sums = [Config(*each) for each in every]
    configs = [c._replace(out=out) for c in sums for out in ("", *OUTS.get(c.element, ()))]
    plain = [c for c in sums if c.element not in SUMS and c.epilogue == "none"]
    scales = list(SCALES)
    configs += [c._replace(scales=scales[at // 2 % len(scales)]) for at, c in enumerate(plain)]
    configs += [one for at, c in enumerate(configs) if (one := _in_parts(c, at)) is not None]
    configs = list(dict.fromkeys(configs))
    # roles take TMA, of which there is no f64
    configs = [c for c in configs if not c.schedule or (c.target != "sm_80" and c.element != "f64")]
    configs = [c for c in configs if c.target != "sm_80" or c.element != "f8E4M3FN"]
    step = 389  # a prime that shares no factor with the number of products
    return (configs[at * step % len(configs)] for at in range(len(configs)))


def _in_parts(config: Config, at: int) -> Config | None:
    """The same product in parts or in a batch or both; which, a number says."""
    at, parts = divmod(at, len(PARTS))
    at, batch = divmod(at, len(BATCHES))
    if "groups" in BATCHES[batch]:
        found = config._replace(groups=True, batch=BATCHES[batch].removeprefix("groups"))
        of_rows = (SCALES.get(config.scales, (None,))[0] or Scale()).outer
        return None if "cluster" in config.schedule or of_rows > 1 else found
    found = config._replace(parts=PARTS[parts], batch=BATCHES[batch])
    if not (found.parts or found.batch) or (
        "stream" in found.parts and "consumers" in found.schedule
    ):
        return None
    if found.parts and at % 2:  # by atomics
        found = found._replace(through=False, epilogue="old", out="")
    return found


def text_of(config: Config) -> str:
    """The program. Rows are multiples of 16 bytes, which a tensor map takes, and said to be."""
    m, n, k = config.sizes
    left, right = config.turned
    acc = SUMS.get(config.element, "f32")
    out = config.out or acc
    shapes: dict[str, tuple[tuple[str, int], ...]] = {
        "a": (("k", k), ("m", m)) if left else (("m", m), ("k", k)),
        "b": (("n", n), ("k", k)) if right else (("k", k), ("n", n)),
        "c": (("m", m), ("n", n)),
    }

    if config.groups:
        shapes["b"] = (("g", len(GROUPS)), *shapes["b"])
    for name in _matrices(config):
        shapes[name] = (*zip(("b0", "b1"), BATCH, strict=True), *shapes[name])

    def memory(name: str, element: str, *more: int) -> str:
        extents = [str(size) if config.static else "?" for _, size in shapes[name]]
        return f"memref<{'x'.join([*map(str, more), *extents])}x{element}>"

    def argument(name: str, element: str) -> str:
        names = ", ".join(f'"{dim}"' for dim, _ in shapes[name])
        return f"%{name}: {memory(name, element)} {{frag.sizes = [{names}]}}"

    a, b, c = memory("a", config.element), memory("b", config.element), memory("c", out)
    arguments = [argument("a", config.element), argument("b", config.element), argument("c", out)]
    add = "arith.addi" if acc == "i32" else "arith.addf"
    extra = words = body = through = through_words = ""
    if config.epilogue == "old":
        wide = "%old" if out == acc else "%wide"
        body = f" epilogue {{\n  ^bb0(%s: {acc}, %old: {out}):\n"
        if out != acc:
            body += f"    %wide = arith.extf %old : {out} to {acc}\n"
        body += f"    %r = {add} %s, {wide} : {acc}\n"
    if config.epilogue == "bias":
        bias = f"memref<{n if config.static else '?'}x{acc}>"
        arguments.append(f'%x: {bias} {{frag.sizes = ["n"]}}')
        extra, words = " with %x", f" with {bias}"
        body = (
            f" epilogue {{\n  ^bb0(%s: {acc}, %old: {out}, %y: {acc}):\n"
            f"    %r = {add} %s, %y : {acc}\n"
        )
    if body and out == acc:
        body += f"    frag.yield %r : {out}\n  }}"
    elif body:
        body += f"    %z = arith.truncf %r : {acc} to {out}\n    frag.yield %z : {out}\n  }}"
    scales = SCALES.get(config.scales, (None, None))
    scaled = [
        written(scale, operand, size, k, config.static, leads)
        for operand, scale, size, leads in zip("ab", scales, (m, n), _leads(config), strict=True)
    ]
    schedule = ", ".join(x for x in (config.schedule, WORDS.get(config.scales, "")) if x)
    for scale in scaled:
        arguments += scale.arguments
    if config.parts and config.through:
        count = int(config.parts.split()[2])
        memories = memory("c", acc, count), f"memref<{'?x' * len(shapes['c'])}i32>"
        arguments += [f"%p: {memories[0]}", f"%n: {memories[1]}"]
        through, through_words = " through %p, %n", f" through {', '.join(memories)}"
    if config.groups:
        arguments.append('%ends: memref<?xi32> {frag.sizes = ["g"]}')
        through, through_words = " groups %ends", " groups memref<?xi32>"
    promised = {dim: size for dims in shapes.values() for dim, size in dims}
    divisors = ", ".join(
        f"{dim} = {next(d for d in (16, 8, 4, 2, 1) if size % d == 0)}"
        for dim, size in promised.items()
    )
    promise = "" if config.static else f" attributes {{frag.divisible = {{{divisors}}}}}"
    head = f"func.func @gemm({', '.join(arguments)}){promise}"
    operands = (
        f"%a{' transposed' * left}{scaled[0].words}, %b{' transposed' * right}{scaled[1].words}"
    )
    given = ", ".join(word for word in (schedule, config.parts) if word)
    return f"""{head} {{
  frag.matmul {operands} into %c{through}{extra} {{{given}}}
      : {a}{scaled[0].type_}, {b}{scaled[1].type_} into {c}{through_words}{words}{body}
  func.return
}}
"""


def numbers(rng: np.random.Generator, element: str, shape: Sequence[int]) -> tuple[Any, Any]:
    """Small whole numbers, as stored and as they mean."""
    name = NAMES.get(element, element)
    stored = encode(rng.integers(-3, 4, shape).astype(float), name)
    return stored, decode(stored, name).astype(float)


def data(config: Config) -> tuple[list[Any], Any]:
    """A, B, C as it was, and what else a product takes; and what C must be, as it is stored."""
    m, n, k = config.sizes
    left, right = config.turned
    rng = np.random.default_rng(m + n + k)
    a, x = numbers(rng, config.element, (*_batch(config, "a"), *((k, m) if left else (m, k))))
    several = (len(GROUPS),) if config.groups else _batch(config, "b")
    b, y = numbers(rng, config.element, (*several, *((n, k) if right else (k, n))))
    acc = SUMS.get(config.element, "f32")
    bias = rng.integers(-5, 6, n).astype(ARRAYS[acc])
    whole = rng.integers(-5, 6, (*_batch(config, "c"), m, n))
    scales = SCALES.get(config.scales, (None, None))
    given, factors = scale_numbers(scales, config.sizes, rng, _leads(config))
    x, y = x.swapaxes(-1, -2) if left else x, y.swapaxes(-1, -2) if right else y
    expected = (x * factors[0]) @ (y * factors[1])
    expected = expected + {"none": 0, "old": whole, "bias": bias}[config.epilogue]
    ends = [int(m * share) for share in GROUPS]
    if config.groups:
        kept = whole.astype(float)
        for product_of, first, end in zip(expected, [0, *ends], ends, strict=False):
            kept[first:end] = product_of[first:end]
        expected = kept

    def stored(values: Any) -> Any:
        if not config.out:
            return values.astype(ARRAYS[acc])
        return encode(values.astype(float), NAMES.get(config.out, config.out))

    extra = [bias, *given] if config.epilogue == "bias" else given
    if config.parts and config.through:
        partial = np.zeros((int(config.parts.split()[2]), *whole.shape), ARRAYS[acc])
        counts = (*_batch(config, "c"), -(-m // TILE), -(-n // TILE))
        extra += [partial, np.zeros(counts, np.int32)]
    if config.groups:
        extra.append(np.array(ends, np.int32))
    return [a, b, stored(whole), *extra], stored(expected)


def _batch(config: Config, name: str) -> tuple[int, ...]:
    return BATCH if name in _matrices(config) else ()


def _matrices(config: Config) -> str:
    """Which of A, B and C are of several matrices."""
    return config.batch.rstrip("xy")


def _leads(config: Config) -> list[tuple[int, ...]]:
    """How many scales of A and of B there are of one matrix."""
    scales, groups = SCALES.get(config.scales, (None, None)), len(GROUPS) * config.groups
    return [
        leading(scale, operand, config.batch, groups)
        for operand, scale in zip("ab", scales, strict=True)
    ]


def check(config: Config) -> list[str] | None:
    """What is wrong with a product; None where it is refused: its rows suit no tensor map, say."""
    if config.static and 0 in config.sizes:
        return None
    text = text_of(config)
    try:
        kernel = fragir.compile(text, target=config.target)
    except FragirError as error:
        if "by TMA" in str(error):
            return None
        raise
    found = [f"{verdict}" for verdict in kernel.assembled.verdicts]
    values, expected = data(config)
    for asynchrony, schedule, resident in (("late", None, 4), ("early", None, 1), ("random", 3, 2)):
        arguments = deepcopy(values)
        try:
            report = kernel(
                *arguments,
                on="emulator",
                check=True,
                asynchrony=asynchrony,
                schedule=schedule,
                resident=resident,  # few blocks take several tiles each
            )
        except FragirError as error:
            if "by TMA" in str(error):
                return None
            found.append(f"{asynchrony}: {error}")
            break
        found += [f"{asynchrony}: {finding}" for finding in report.findings]
        if config.parts and config.through and arguments[-1].any():
            found.append(f"{asynchrony}: counts are not zero again")
        wrong = int(np.sum(arguments[2] != expected))
        if wrong:
            found.append(f"{asynchrony}: {wrong} elements are wrong")
    return [f"{one}: {config}" for one in found]


def tasks(plan: Plan) -> Sequence[Any]:
    configs = [config._asdict() for config in grid()]
    return configs if plan.count is None else configs[: plan.count]


def run(task: Task) -> Result:
    given: dict[str, Any] = dict(task.what)
    for name in ("turned", "sizes"):
        given[name] = tuple(given[name])
    told = check(Config(**given))
    return {"findings": told or [], "programs": 1, "refused": int(told is None)}


SWEEP = Sweep(tasks, run, {}, seconds=120.0)
