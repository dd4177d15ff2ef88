"""What is only assumed of the machine, each fact a file of `facts_data/`: PTX whose comment asks.

The comment at the head of a file is a JSON document: `asks`; `block`, threads; `arguments`, arrays
(`bytes` of one `fill`, or which `count` up) and tensor maps over them (`map of` an argument, `row`:
bytes from one row to the next); `answers`, what the argument `result` may hold then, (text, times)
or "trap"; and which answer is `assumed`. A text has bytes: `34*22` is 22 times 34, `6..38` counts.

A kernel that traps leaves no working CUDA behind: `asked_apart` gives each a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.errors import FragirError

FOLDER = Path(__file__).with_name("facts_data")
EMULATED = "sm_90a"
LONGEST = 120
"""Seconds that a process of `asked_apart` may take."""
Array: TypeAlias = npt.NDArray[np.uint8]
Fact = dict[str, Any]
"""The document of a fact, JSON."""
Launch = Callable[[Fact, str, list[object]], None]


def names() -> list[str]:
    """A file each."""
    return sorted(path.stem for path in FOLDER.glob("*.ptx"))


def lowest_target(name: str) -> int:
    """The number of the first target that a fact's kernel runs on: 90 of `sm_90`."""
    found = re.search(r"^\.target sm_(\d+)", read(name)[1], re.MULTILINE)
    assert found is not None
    return int(found[1])


def read(name: str) -> tuple[Fact, str]:
    """The document of a fact, and its PTX."""
    text = (FOLDER / f"{name}.ptx").read_text("utf-8")
    lines = text.splitlines()
    head = [line for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "//")]]
    fact: Fact = json.loads("\n".join(line[2:] for line in head))
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


def arguments(fact: Fact) -> list[Any]:
    """Arrays and tensor maps, as a launch takes them."""
    from fragir.emulator import TensorMap

    made: list[Any] = [None] * len(fact["arguments"])
    for index, one in enumerate(fact["arguments"]):
        if "bytes" in one:
            held: Array = np.full((one["bytes"],), one.get("fill", 0), np.uint8)
            made[index] = np.arange(one["bytes"], dtype=np.uint8) if one.get("count") else held
    for index, one in enumerate(fact["arguments"]):
        if "map of" in one:
            size = int(one["type"][1:]) // 8
            strides = (one["row"], size)
            shape, box, array = tuple(one["shape"]), tuple(one["box"]), made[one["map of"]]
            made[index] = TensorMap(array, box, 0, strides=strides, shape=shape, kind=one["type"])
    return made


def answer_text(fact: Fact, found: Array | None) -> str:
    """What a result means; None is a trap."""
    for meaning, answer in fact["answers"].items():
        if answer == "trap":
            if found is None:
                return meaning
        elif found is not None and np.array_equal(found, spelt(*answer)):
            return meaning
    return "something else"


def ask_machine(name: str, launch: Launch) -> Fact:
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
        "found": answer_text(fact, held),
        "words": words,
        "held": None if held is None else held.tobytes().hex(),
    }


def on_emulator(fact: Fact, ptx: str, given: list[object]) -> None:
    """Runs a fact's kernel on the emulator."""
    from fragir import emulator

    emulator.run(ptx, block=(fact["block"],), arguments=given, target=EMULATED)


def on_gpu(target: str) -> Launch:
    """What runs a fact's kernel on the GPU, compiled for a target."""
    from fragir.toolchain import driver, ptxas

    def run(fact: Fact, ptx: str, given: list[object]) -> None:
        cubin = ptxas.assemble(ptx, target).cubin
        driver.launch(cubin, "fact", grid=(1,), block=(fact["block"],), arguments=given)

    return run


def asked_apart(name: str, target: str) -> Fact:
    """The answer of the GPU, from a process of its own. FragirError where that gives none."""
    command = [sys.executable, "-m", __name__, name, target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
    except (subprocess.SubprocessError, OSError) as problem:
        raise FragirError(f"{name} could not be asked: {problem}") from problem
    return json.loads(done.stdout)


if __name__ == "__main__":
    print(json.dumps(ask_machine(sys.argv[1], on_gpu(sys.argv[2]))))
