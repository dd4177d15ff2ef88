"""`python -m fragir.validation`: what the emulator assumes of arithmetic, and what a GPU says."""

from __future__ import annotations

import argparse

from fragir.errors import FragirError
from fragir.validation.probes import emulator_runner, gpu_runner, gpu_target
from fragir.validation.questions import ask


def main() -> int:
    """Prints a line for each question; 1 where the GPU decides otherwise than assumed."""
    parser = argparse.ArgumentParser(prog="python -m fragir.validation", description=__doc__)
    parser.add_argument("--on", choices=("emulator", "gpu"), default="emulator")
    parser.add_argument("--target", default="sm_90a", help="of the emulator; a GPU says its own")
    options = parser.parse_args()
    target: str = options.target
    if options.on == "gpu":
        from fragir.toolchain import driver

        reason = driver.available()
        if reason is not None:
            raise SystemExit(f"no GPU can be used: {reason}")
        target = gpu_target(driver.gpu().target)
    try:
        assumed = ask(target, emulator_runner)
        found = ask(target, gpu_runner) if options.on == "gpu" else assumed
    except FragirError as error:
        raise SystemExit(error.sentence) from error
    otherwise = 0
    for one, other in zip(assumed, found, strict=True):
        agree = one.bits == other.bits
        otherwise += not agree
        print(f"{one.name:12} {one.asks}: {other.text}" + ("" if agree else f" (not {one.text})"))
    print(f"{len(found)} questions on {target}, {otherwise} answered otherwise than assumed")
    return 1 if otherwise else 0


if __name__ == "__main__":
    raise SystemExit(main())
