"""Small kernels written as a body: what the tests of memory and control share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator import Report, run

HEAD = """
.version 9.2
.target sm_100a
.address_size 64
"""
REGISTERS = """
    .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>;
    .reg .f64 %g<8>; .reg .b128 %q<4>; .reg .b32 %tid; .reg .b64 %out, %in;
"""


def body(text: str, *, before: str = "", parameters: str = "", start: str = "") -> str:
    """PTX of a kernel `k(in, out, ...)`; %in and %out point at this thread's 64 bytes of both."""
    return f"""{HEAD}{before}
.visible .entry k(.param .u64 in, .param .u64 out{parameters})
{{
    {REGISTERS}
    mov.u32 %tid, %tid.x;
    ld.param.u64 %in, [in]; mad.wide.u32 %in, %tid, 64, %in;
    ld.param.u64 %out, [out]; mad.wide.u32 %out, %tid, 64, %out;
    {start}
    {text}
    ret;
}}
"""


def launch(
    text: str,
    data: npt.NDArray[Any] | None = None,
    *more: Any,
    before: str = "",
    parameters: str = "",
    **options: Any,
) -> tuple[npt.NDArray[np.uint8], Report]:
    """(64 bytes that every thread of a block wrote, the report) of a kernel of that body."""
    block: tuple[int, ...] = options.get("block", (32,))
    threads = int(np.prod(block))
    given = np.zeros((threads, 64), np.uint8)
    if data is not None:
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        given.reshape(-1)[: flat.size] = flat
    out = np.zeros((threads, 64), np.uint8)
    ptx = body(text, before=before, parameters=parameters)
    report = run(ptx, arguments=[given, out, *more], **options)
    return out, report


def random_bytes(threads: int = 32, seed: int = 0) -> npt.NDArray[np.uint8]:
    """64 random bytes for every thread."""
    return np.random.default_rng(seed).integers(0, 256, (threads, 64), dtype=np.uint8)
