"""Many instructions on the same operands in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator import run

Bits = npt.NDArray[np.uint64]
_WIDTHS = {"c": 8, "h": 16, "r": 32, "q": 64}


def evaluate_all(
    lines: list[str],
    operands: dict[str, npt.NDArray[Any]],
    target: str = "sm_100a",
    before: str = "",
) -> Bits:
    """Results `[line, case]` of instructions that write `%h0`, `%r0`, `%q0`, `%c0` or `%p0`.

    `operands`: register (`r1`) -> its bits, one for each case; all alike long. `before`: what
    each case executes first.
    """
    count = len(next(iter(operands.values())))
    blocks = -(-count // 128)
    parameters = "".join(f".param .u64 {name}, " for name in operands)
    loads = "".join(
        f"ld.param.u64 %x1, [{name}]; mad.wide.u32 %x1, %t0, {_WIDTHS[name[0]] // 8}, %x1; "
        f"ld.global.b{_WIDTHS[name[0]]} %{name}, [%x1];\n"
        for name in operands
    )
    body: list[str] = []
    for number, line in enumerate(lines):
        letter = line.split("%")[1][0]
        at = f"[%x0+{8 * 128 * blocks * number}]"
        body.append(f"{line};")
        if letter == "p":
            body.append(f"selp.u32 %t1, 1, 0, %p0; st.global.b32 {at}, %t1;")
        else:
            body.append(f"st.global.b{_WIDTHS[letter]} {at}, %{letter}0;")
    text = f"""
.version 9.2
.target {target}
.address_size 64
.visible .entry k({parameters}.param .u64 out)
{{
.reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<9>;
.reg .b32 %t<4>; .reg .b64 %x<3>;
mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x; mad.lo.u32 %t0, %t0, 128, %t1;
{loads}
ld.param.u64 %x0, [out]; mad.wide.u32 %x0, %t0, 8, %x0;
{before}
{chr(10).join(body)}
ret;
}}
"""
    out = np.zeros((len(lines), 128 * blocks), np.uint64)
    given = [
        np.resize(values.astype(f"u{_WIDTHS[name[0]] // 8}"), 128 * blocks)
        for name, values in operands.items()
    ]
    run(text, grid=(blocks,), block=(128,), arguments=[*given, out])
    return out[:, :count]
