"""What is only assumed of the machine, each fact a file of `facts/`: PTX whose comment asks.

The comment at the head of a file is a JSON document: `asks`; `block`, threads; `arguments`, arrays
(`bytes` of one `fill`, or which `count` up) and tensor maps over them (`map of` an argument, `row`:
bytes from one row to the next); `answers`, what the argument `result` may hold then, (text, times)
or "trap"; and which answer is `assumed`. A text has bytes: `34*22` is 22 times 34, `6..38` counts.

A kernel that traps ends its process: every fact has one of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.errors import FragirError

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

FOLDER = Path(__file__).with_name("facts")
Array = np.ndarray[Any, np.dtype[np.uint8]]


def units(kit: Kit) -> list[str]:
    """A file each."""
    return sorted(path.stem for path in FOLDER.glob("*.ptx"))


def read(name: str) -> tuple[dict[str, Any], str]:
    """The document of a fact, and its PTX."""
    text = (FOLDER / f"{name}.ptx").read_text("utf-8")
    lines = text.splitlines()
    head = [line for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "//")]]
    fact: dict[str, Any] = json.loads("\n".join(line[2:] for line in head))
    return fact, text


def spelt(text: str, times: int) -> Array:
    """The bytes that a text of an answer says."""
    found: list[int] = []
    for word in text.split():
        if ".." in word:
            start, stop = map(int, word.split(".."))
            found += range(start, stop)
        else:
            value, count = map(int, word.split("*"))
            found += [value] * count
    return np.array(found * times, np.uint8)


def arguments(fact: dict[str, Any]) -> list[Any]:
    """Arrays and tensor maps, as a launch takes them."""
    from fragir.emulator import TensorMap

    made: list[Any] = [None] * len(fact["arguments"])
    for index, one in enumerate(fact["arguments"]):
        if "bytes" in one:
            held: Array = np.full(one["bytes"], one.get("fill", 0), np.uint8)
            made[index] = np.arange(one["bytes"], dtype=np.uint8) if one.get("count") else held
    for index, one in enumerate(fact["arguments"]):
        if "map of" in one:
            size = int(one["type"][1:]) // 8
            strides = (one["row"], size)
            shape, box, array = tuple(one["shape"]), tuple(one["box"]), made[one["map of"]]
            made[index] = TensorMap(array, box, 0, strides=strides, shape=shape, kind=one["type"])
    return made


def answered(fact: dict[str, Any], found: Array | None) -> str:
    """What a result means; None is a trap."""
    for meaning, answer in fact["answers"].items():
        if answer == "trap":
            if found is None:
                return meaning
        elif found is not None and np.array_equal(found, spelt(*answer)):
            return meaning
    return "something else"


def asked(name: str, launch: Callable[[dict[str, Any], str, list[Any]], None]) -> dict[str, Any]:
    """The answer of a machine: `launch` runs the kernel, and raises FragirError for a trap."""
    fact, ptx = read(name)
    given = arguments(fact)
    words, held = "", given[fact["result"]]
    try:
        launch(fact, ptx, given)
    except FragirError as error:
        words, held = str(error), None
    return {
        "asks": fact["asks"],
        "assumed": fact["assumed"],
        "found": answered(fact, held),
        "words": words,
        "held": None if held is None else held.tobytes().hex(),
    }


def on_emulator(fact: dict[str, Any], ptx: str, given: list[Any]) -> None:
    """Runs a fact's kernel on the emulator."""
    from fragir import emulator

    emulator.run(ptx, block=(fact["block"],), arguments=given, target=TARGET)


def on_gpu(fact: dict[str, Any], ptx: str, given: list[Any]) -> None:
    """Runs a fact's kernel on the GPU."""
    from fragir.toolchain import driver, ptxas

    cubin = ptxas.assemble(ptx, TARGET).cubin
    block = (fact["block"],)
    driver.launch(cubin, "fact", grid=(1,), block=block, arguments=given)


def prepare(kit: Builder) -> None:
    """Cubins; the emulator says what is assumed."""
    for name in units(kit):
        kit.carry(read(name)[1])
        found = asked(name, on_emulator)
        if found["found"] != found["assumed"]:
            raise FragirError(f"{name}: the emulator says {found['found']}: {found['words']}")


def run(work: Work) -> dict[str, Any]:
    """What the GPU says, with `wrong` where something else is assumed."""
    found = asked(work.unit, on_gpu)
    if found["found"] == found["assumed"]:
        return found
    return {**found, "wrong": f"{found['asks']} {found['found']}, not {found['assumed']}"}
