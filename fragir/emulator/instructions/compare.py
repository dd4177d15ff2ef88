"""set and setp: comparisons with a boolean combination (PTX ISA 9.2, sections 9.7.6, 9.7.7)."""

from __future__ import annotations

from fragir.emulator.program.opcode import Opcode

OPCODES: tuple[Opcode, ...] = (
    Opcode(
        "setp",
        """
        .eq|ne{.BOOL}.BITS d_:pred{|q}, a, b{, c:pred?BOOL}
        .CMP{.BOOL}.s16|s32|s64 d_:pred{|q}, a, b{, c:pred?BOOL}
        .UCMP{.BOOL}.u16|u32|u64 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.f32|f16x2 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.f64|bf16x2 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.f16 d_:pred, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.bf16 d_:pred, a, b{, c:pred?BOOL}
        """,
        "p = compare(a, b)\nd = combine(p, c)\nq = combine(not p, c)",
        apart=True,
    ),
    Opcode(
        "set",
        """
        .eq|ne{.BOOL}.TRUTH.BITS d, a, b{, c:pred?BOOL}
        .CMP{.BOOL}.TRUTH.s16|s32|s64 d, a, b{, c:pred?BOOL}
        .UCMP{.BOOL}.TRUTH.u16|u32|u64 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u32|s32|f32|f16.f32 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u16|s16|u32|s32|f16.f16 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u32|s32|f16x2.f16x2 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.TRUTH.f64 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.bf16.f16|f32 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.u16|s16|u32|s32|bf16.bf16 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.u32|s32|bf16x2.bf16x2 d, a, b{, c:pred?BOOL}
        """,
        "truth(combine(compare(a, b), c))",
        address="number",
        apart=True,
    ),
)
