"""The machine code of the main loops that docs/kernels/main_loops.md lists.

python -m tests.docs.main_loops        writes it anew
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import fragir
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import Instruction, main_loop

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernels" / "main_loops.md"
SIZE = 8192
ROLES, CLUSTER = ", roles", ", roles, cluster = 2 : i64"
PING_PONG = ", roles, consumers = 2 : i64"

#: target, types of A and of C, tile, whether B is K-major, what else the product says
CASES = (
    ("sm_90a", "f16", "f16", (128, 256, 64), False, ""),
    ("sm_90a", "f16", "f16", (128, 256, 64), False, ROLES),
    ("sm_90a", "bf16", "f32", (128, 128, 64), False, CLUSTER),
    ("sm_90a", "f16", "f16", (64, 256, 64), False, PING_PONG),
    ("sm_90a", "f8E4M3FN", "f16", (128, 256, 128), True, ROLES),
    ("sm_90a", "f8E4M3FN", "f16", (128, 128, 128), False, ROLES),
    ("sm_90a", "si8", "i32", (128, 256, 128), True, ROLES),
    ("sm_90a", "tf32", "f32", (128, 256, 32), True, ROLES),
    ("sm_90a", "tf32", "f32", (128, 128, 32), False, ROLES),
    ("sm_80", "f16", "f16", (128, 128, 32), False, ""),
    ("sm_80", "si8", "i32", (128, 128, 64), False, ""),
    ("sm_80", "tf32", "f32", (128, 128, 32), False, ""),
    ("sm_80", "f64", "f64", (64, 64, 16), False, ""),
)


def listings(every: int = 1) -> Iterator[str]:
    """A heading and the loop's code of every case, or every second, third one ..."""
    for target, element, out, tile, turned, words in CASES[::every]:
        a, c = f"memref<{SIZE}x{SIZE}x{element}>", f"memref<{SIZE}x{SIZE}x{out}>"
        schedule = f"tile = array<i64: {', '.join(map(str, tile))}>, stages = 3 : i64{words}"
        transposed = " transposed" if turned else ""
        text = f"""func.func @gemm(%a: {a}, %b: {a}, %c: {c}) {{
  frag.matmul %a, %b{transposed} into %c {{{schedule}}} : {a}, {a} into {c}
  func.return
}}
"""
        kernel = fragir.compile(text, target=target)
        loop = main_loop(disassemble(assemble(kernel.ptx, target).cubin))
        title = f"{element}, B {'K-major' if turned else 'row-major'}, C {out}, {target}"
        lines = "\n".join(_folded(loop.instructions))
        yield f"### {title}\n\n`{{{schedule}}}`\n\n```text\n{lines}\n```\n"


def _folded(instructions: tuple[Instruction, ...]) -> Iterator[str]:
    """One line an instruction; runs of tensor-core instructions of a warp as one."""

    def run(pair: tuple[int, Instruction]) -> object:
        number, one = pair
        word = one.text.split()[0]
        return word if re.match("[HID]MMA", word) else number

    for _, group in groupby(enumerate(instructions), run):
        found = [one for _, one in group]
        times = f"  ({len(found)} of them)" if len(found) > 1 else ""
        yield found[0].text + times


def written() -> str:
    """The page with listings as they are now."""
    head = PAGE.read_text("utf-8").partition("<!-- listings -->")[0]
    return head + "<!-- listings -->\n\n" + "\n".join(listings())


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
