"""A one-instruction kernel around any scalar instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import run

Evaluate = Callable[..., "npt.NDArray[Any]"]


def one_instruction(mnemonic: str, inputs: Sequence[int], output: int, extra: str = "") -> str:
    """PTX: every thread loads operands of the given widths (bits), stores the result."""
    declarations = [f".reg .b{w} %a{i};" for i, w in enumerate(inputs)]
    loads = [
        f"ld.param.u64 %p, [in{i}]; mad.wide.u32 %p, %t, {w // 8}, %p; ld.global.b{w} %a{i}, [%p];"
        for i, w in enumerate(inputs)
    ]
    names = ", ".join(["%d", *(f"%a{i}" for i in range(len(inputs)))])
    parameters = ", ".join(f".param .u64 in{i}" for i in range(len(inputs)))
    return f"""
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k({parameters}, .param .u64 out)
{{
    .reg .b64 %p; .reg .b32 %t; .reg .b{output} %d; {" ".join(declarations)}
    mov.u32 %t, %ctaid.x; shl.b32 %t, %t, 5; mov.u32 %d1, %laneid; add.u32 %t, %t, %d1;
    {" ".join(loads)}
    {mnemonic} {names}{extra};
    ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, {output // 8}, %p; st.global.b{output} [%p], %d;
    ret;
}}
""".replace("%d1", "%lane").replace(".reg .b32 %t;", ".reg .b32 %t, %lane;")


@pytest.fixture
def evaluate() -> Evaluate:
    """evaluate(mnemonic, [arrays of raw bits], output width, extra operands) -> raw results."""

    def function(
        mnemonic: str, inputs: Sequence[npt.NDArray[Any]], output: int, extra: str = ""
    ) -> npt.NDArray[Any]:
        count = len(inputs[0])
        blocks = (count + 31) // 32
        padded = [np.resize(x, blocks * 32) for x in inputs]
        out = np.zeros(blocks * 32, f"u{output // 8}")
        text = one_instruction(mnemonic, [8 * x.itemsize for x in inputs], output, extra)
        run(text, grid=(blocks,), arguments=[*padded, out])
        return out[:count]

    return function
