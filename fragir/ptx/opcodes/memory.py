"""Loads, stores, atomics, addresses, hints for caches (PTX ISA 9.2, sections 9.7.9 and 9.7.13)."""

from __future__ import annotations

from fragir.ptx.opcodes.row import HINT, L1, SCOPE, Opcode, Rule, needs, rule_apart, width

# -- access ---------------------------------------------------------------------------------------

_LD_ST: tuple[Rule, ...] = (
    width,
    rule_apart("volatile mmio weak nc", "cta cluster gpu"),
    rule_apart("volatile weak nc", "sys"),
    rule_apart("relaxed acquire release mmio", "local const param param::entry param::func"),
    rule_apart("volatile", "const param param::entry param::func"),
    rule_apart("relaxed acquire release volatile mmio", "ca cg cs lu cv wb wt"),
    rule_apart("volatile mmio", f"{L1} {HINT}"),
    rule_apart(L1, "ca cg cs lu cv wb wt local const shared shared::cta shared::cluster"),
    rule_apart(L1, "param param::entry param::func"),
    rule_apart(
        f"L2::64B L2::128B L2::256B {HINT}", "local const shared shared::cta shared::cluster"
    ),
    rule_apart(f"L2::64B L2::128B L2::256B {HINT}", "param param::entry param::func"),
    rule_apart("mmio", "v2 v4 v8 L2::64B L2::128B L2::256B shared shared::cta shared::cluster"),
    needs("mmio", "sys"),
    needs("mmio", "relaxed"),
)
_ACCESS: tuple[Opcode, ...] = (
    Opcode(
        "ld",
        "{.weak|volatile|relaxed|acquire|nc}{.mmio}{.SCOPE}"
        "{.SPACE|const|param|param::entry|param::func}"
        "{.ca|cg|cs|lu|cv}{.EVICT1}{.EVICT2}{.HINT}{.AHEAD}{.v2|v4|v8}.VALUE d, [a]{, p?HINT}",
        step="load",
        rules=(
            *_LD_ST,
            needs("relaxed acquire", SCOPE),
            needs(SCOPE, "relaxed acquire"),
            needs("nc", "global"),
        ),
        bits="load",
        access="load",
        address="number",
        polls="ordered",
        apart=True,
    ),
    Opcode(
        "ldu",
        """
        {.global}{.v2}.VALUE d, [a]
        {.global}.v4.b8|b16|b32|u8|u16|u32|s8|s16|s32|f32 d, [a]
        """,
        step="load",
        rules=(width,),
        bits="load",
        access="load",
        address="number",
        read_only=True,
        apart=True,
    ),
    Opcode(
        "st",
        "{.weak|volatile|relaxed|release}{.mmio}{.SCOPE}{.SPACE|param|param::func}"
        "{.wb|cg|cs|wt}{.EVICT1}{.EVICT2}{.HINT}{.v2|v4|v8}.VALUE [a], b{, p?HINT}",
        step="store",
        rules=(*_LD_ST, needs("relaxed release", SCOPE), needs(SCOPE, "relaxed release")),
        bits="store",
        access="store",
    ),
)

# -- atomics --------------------------------------------------------------------------------------

_UNDOCUMENTED = "what the last operand does is not documented"
_HALVES = "f16|f16x2|bf16|bf16x2"


def _operations(front: str, operands: str, exchanges: bool) -> str:
    """Which operation goes with which type; `front`: the words before them."""
    more = f"""
        {front}.exch{{.HINT}}.b32|b64|b128 {operands}{{, p?HINT}}
        {front}.cas.b16|b32|b64|b128 {operands}, c
        {front}.and|or|xor|exch.b32 {operands}, c ! {_UNDOCUMENTED}
        {front}.exch.b128 {operands}, c ! {_UNDOCUMENTED}
    """
    many = front.replace("|SHARED", "")
    return f"""
        {front}.and|or|xor{{.HINT}}.b32|b64 {operands}{{, p?HINT}}
        {front}.inc|dec{{.HINT}}.u32 {operands}{{, p?HINT}}
        {front}.min|max{{.HINT}}.u32|s32|u64|s64 {operands}{{, p?HINT}}
        {front}.add{{.HINT}}.u32|s32|u64|f32|f64 {operands}{{, p?HINT}}
        {front}.add.noftz{{.HINT}}.{_HALVES} {operands}{{, p?HINT}}
        {many}.add{{.HINT}}.v2|v4.f32 {operands}{{, p?HINT}}
        {many}.add|min|max.noftz{{.HINT}}.v2|v4|v8.f16|bf16 {operands}{{, p?HINT}}
        {many}.add|min|max.noftz{{.HINT}}.v2|v4.f16x2|bf16x2 {operands}{{, p?HINT}}
        {more if exchanges else ""}
    """


_HINTED = rule_apart(HINT, "shared shared::cta shared::cluster")
_ATOMICS: tuple[Opcode, ...] = (
    Opcode(
        "atom",
        _operations(
            "{.relaxed|acquire|release|acq_rel}{.SCOPE}{.global|SHARED}", "d_, [a], b", True
        ),
        step="atomic",
        rules=(_HINTED,),
        bits="atomic",
        access="atomic",
        strong=True,
        address="number",
        polls="always",
        apart=True,
    ),
    Opcode(
        "red",
        _operations("{.relaxed|release}{.SCOPE}{.global|SHARED}", "[a], b", False),
        step="atomic",
        rules=(_HINTED,),
        bits="atomic",
        access="atomic",
        strong=True,
    ),
)

# -- addresses ------------------------------------------------------------------------------------

_WHERE = "SPACE|const|param|param::entry"
_GENERIC = "generic addresses have 64 bits here"
_SIGNED = "signed addresses are not documented"
_ADDRESSES: tuple[Opcode, ...] = (
    Opcode("alloca", ".u32|u64 d, size{, align}", step="allocate", stack=True),
    Opcode("stacksave", ".u32|u64 d", step="save stack", stack=True),
    Opcode("stackrestore", ".u32|u64 a", step="restore stack", stack=True),
    *(
        Opcode(
            name,
            f".{_WHERE}.u64 d, a\n.{_WHERE}.u32 d, a ! {_GENERIC}",
            step="convert address",
            address="same",
        )
        for name in ("cvta", "cvta.to")
    ),
    Opcode("isspacep", f".{_WHERE} d:pred, a:u64", step="is space"),
    Opcode(
        "mapa",
        f"""
        .shared::cluster.u32|u64 d, a, b
        .u64 d, a, b
        .u32 d, a, b ! {_GENERIC}
        {{.shared::cluster}}.s32|s64 d, a, b ! {_SIGNED}
        """,
        step="address in block",
        address="same",
    ),
    Opcode(
        "getctarank",
        f"""
        .shared::cluster.u32|u64 d:u32, a
        .u64 d:u32, a
        .u32 d:u32, a ! {_GENERIC}
        {{.shared::cluster}}.s32|s64 d:u32, a ! {_SIGNED}
        """,
        step="block of address",
        address="number",
    ),
)

# -- cache hints ----------------------------------------------------------------------------------

_POLICY = (
    ".L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"
    "{.L2::evict_first|L2::evict_unchanged}.b64"
)
_CACHE_HINTS: tuple[Opcode, ...] = (
    Opcode(
        "prefetch",
        """
        {.global|local}.L1|L2 [a]
        {.global}.L2::evict_last|L2::evict_normal [a]
        {.const|param}.tensormap [a]
        """,
        step="prefetch",
    ),
    Opcode("prefetchu", ".L1 [a]", step="prefetch"),
    Opcode("discard", "{.global}.L2 [a], size", step="cache line"),
    Opcode("applypriority", "{.global}.L2::evict_normal [a], size", step="cache line"),
    Opcode(
        "createpolicy.fractional", f"{_POLICY} d{{, part}}", step="cache policy", address="number"
    ),
    Opcode(
        "createpolicy.range",
        f"{{.global}}{_POLICY} d, [a], b, c",
        step="cache policy",
        address="number",
    ),
    Opcode("createpolicy.cvt", ".L2.b64 d, a", step="cache policy", address="number"),
)

OPCODES: tuple[Opcode, ...] = (
    *_ACCESS,
    *_ATOMICS,
    *_ADDRESSES,
    *_CACHE_HINTS,
)
