"""Which modifiers memory, asynchronous and control instructions can have (PTX ISA 9.2).

A form is the first words of an opcode and slots. Every other word must belong to a slot, and a slot
takes one word; as in ptxas, words may come in any order. Slots with `!` must be filled. Rules say
what else must hold. Operands are checked where instructions are decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from fragir.emulator.instructions.vocabulary import foreign

Words = frozenset[str]
#: What is wrong with the words of an opcode; None: nothing.
Rule = Callable[[Words], str | None]

_S = "global local shared shared::cta shared::cluster"
_SCOPE = "cta cluster gpu sys"
_TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_L1 = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
_L2 = "L2::evict_normal L2::evict_first L2::evict_last"
_HINT = "L2::cache_hint"
_AHEAD = "L2::64B L2::128B L2::256B"
_ATOMIC = "and or xor cas exch add inc dec min max"
_ATOMIC_TYPES = f"{_TYPES} f16 f16x2 bf16 bf16x2"
_REDUCE = "add min max inc dec and or xor"
_MBAR = "mbarrier::complete_tx::bytes"
_DIM = "1d 2d 3d 4d 5d"
_OWN = "shared shared::cta"


@dataclass(frozen=True, slots=True)
class Form:
    """`head`: the words it begins with; the slots, whether each must be filled; the rules."""

    head: tuple[str, ...]
    slots: tuple[tuple[Words, bool], ...]
    rules: tuple[Rule, ...] = ()


def _form(head: str, *slots: str, rules: tuple[Rule, ...] = ()) -> Form:
    made = tuple((frozenset(s.lstrip("!").split()), s.startswith("!")) for s in slots)
    return Form(tuple(head.split(".")), made, rules)


def _needs(words: str, others: str) -> Rule:
    """Any of `words` is there only with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: Words) -> str | None:
        found = sorted(first & opcode)
        if found and not second & opcode:
            return f".{found[0]} needs .{', .'.join(sorted(second))}"
        return None

    return rule


def _apart(words: str, others: str) -> Rule:
    """None of `words` goes together with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: Words) -> str | None:
        a, b = sorted(first & opcode), sorted(second & opcode)
        return f".{a[0]} and .{b[0]} exclude each other" if a and b else None

    return rule


def _width(opcode: Words) -> str | None:
    """Vectors have at most 16 bytes, in global memory 32; hints for L2 lines need those."""
    count = next((int(w[1:]) for w in ("v8", "v4", "v2") if w in opcode), 1)
    kind = next((w for w in _TYPES.split() if w in opcode), "b8")
    bits = int(kind[1:]) * count
    wide = (count, kind[1:]) in ((8, "32"), (4, "64"))
    if bits > 128 and not wide:
        return f".v{count} of .{kind} is too wide"
    if wide and opcode & frozenset("local shared shared::cta shared::cluster const".split()):
        return "256 bits at once are for .global"
    if not wide and opcode & frozenset(_L2.split()):
        return "eviction priorities of L2 need .v8.b32 or .v4.b64"
    return None


_VEC = "v2 v4 v8"
_STRONG_LD = "relaxed acquire"
_ACCESS: tuple[Rule, ...] = (
    _width,
    _apart("volatile mmio weak nc", "cta cluster gpu"),
    _apart("volatile weak nc", "sys"),
    _apart("relaxed acquire release mmio", "local const param param::entry param::func"),
    _apart("volatile", "const param param::entry param::func"),
    _apart("relaxed acquire release volatile mmio", "ca cg cs lu cv wb wt"),
    _apart("volatile mmio", f"{_L1} {_HINT}"),
    _apart(_L1, f"ca cg cs lu cv wb wt local const {_OWN} shared::cluster"),
    _apart(f"{_AHEAD} {_HINT}", f"local const {_OWN} shared::cluster"),
    _apart("mmio", f"{_VEC} {_AHEAD} {_OWN} shared::cluster"),
    _needs("mmio", "sys"),
)

FORMS: tuple[Form, ...] = (
    _form(
        "ld",
        "weak volatile relaxed acquire nc",
        "mmio",
        _SCOPE,
        f"{_S} const param param::entry param::func",
        "ca cg cs lu cv",
        _L1,
        _L2,
        _HINT,
        _AHEAD,
        _VEC,
        f"!{_TYPES}",
        rules=(
            *_ACCESS,
            _needs(_STRONG_LD, _SCOPE),
            _needs(_SCOPE, _STRONG_LD),
            _needs("mmio", "relaxed"),
            _needs("nc", "global"),
        ),
    ),
    _form("ldu", "global", "v2 v4", f"!{_TYPES}", rules=(_width,)),
    _form("st.bulk", "weak", "shared::cta"),
    _form(
        "st.async",
        "weak release",
        "mmio",
        _SCOPE,
        "global shared::cluster",
        _MBAR,
        "v2 v4",
        f"!{_TYPES}",
        rules=(
            _width,
            _needs("release", "gpu sys"),
            _apart("release", f"{_MBAR} shared::cluster v2 v4"),
            _apart("weak", "global"),
            _needs("mmio", "release"),
            _needs("mmio", "sys"),
            _needs(_SCOPE, "release"),
            _needs("global", "release"),
            _apart(_MBAR, "b8 b16 u8 u16 s8 s16 b128"),
            _apart("release", "b128"),
        ),
    ),
    _form(
        "st",
        "weak volatile relaxed release",
        "mmio",
        _SCOPE,
        f"{_S} param param::func",
        "wb cg cs wt",
        _L1,
        _L2,
        _HINT,
        _VEC,
        f"!{_TYPES}",
        rules=(
            *_ACCESS,
            _needs("relaxed release", _SCOPE),
            _needs(_SCOPE, "relaxed release"),
            _needs("mmio", "relaxed"),
        ),
    ),
    _form(
        "atom",
        "relaxed acquire release acq_rel",
        _SCOPE,
        "global shared shared::cta shared::cluster",
        f"!{_ATOMIC}",
        "noftz",
        _HINT,
        _VEC,
        f"!{_ATOMIC_TYPES}",
        rules=(_apart(f"{_VEC} {_HINT}", f"{_OWN} shared::cluster"),),
    ),
    _form(
        "red.async",
        "!relaxed release",
        "mmio",
        f"!{_SCOPE}",
        "global shared::cluster",
        _MBAR,
        "!inc dec min max and or xor add",
        "!u32 s32 b32 u64 s64",
        rules=(
            _needs("relaxed", "cluster"),
            _needs("relaxed", _MBAR),
            _apart("relaxed", "mmio global"),
            _apart("release", f"{_MBAR} shared::cluster inc dec min max and or xor cta"),
            _needs("mmio", "sys"),
        ),
    ),
    _form(
        "red",
        "relaxed release",
        _SCOPE,
        "global shared shared::cta shared::cluster",
        "!and or xor add inc dec min max",
        "noftz",
        _HINT,
        _VEC,
        f"!{_ATOMIC_TYPES}",
        rules=(_apart(f"{_VEC} {_HINT}", f"{_OWN} shared::cluster"),),
    ),
    _form("prefetchu", "!L1"),
    _form(
        "prefetch",
        "global local const param",
        "!L1 L2 tensormap L2::evict_last L2::evict_normal",
        rules=(
            _needs("const param", "tensormap"),
            _apart("tensormap", "global local"),
            _apart("L2::evict_last L2::evict_normal", "local const param"),
        ),
    ),
    _form("applypriority", "global", "!L2::evict_normal"),
    _form("discard", "global", "!L2"),
    _form("createpolicy.cvt", "!L2", "!b64"),
    *(
        _form(
            f"createpolicy.{way}",
            *(("global",) if way == "range" else ()),
            "!L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
            "L2::evict_first L2::evict_unchanged",
            "!b64",
        )
        for way in ("range", "fractional")
    ),
    _form("cvta.to", f"!{_S} const param param::entry", "!u32 u64"),
    _form("cvta", f"!{_S} const param param::entry", "!u32 u64"),
    _form("isspacep", f"!{_S} const param param::entry"),
    _form("mapa", "shared::cluster", "!u32 u64"),
    _form("getctarank", "shared::cluster", "!u32 u64"),
    *(_form(word, "!u32 u64") for word in ("alloca", "stacksave", "stackrestore")),
    *(_form(f"cp.async.{cop}", f"!{_OWN}", "!global", _HINT, _AHEAD) for cop in ("ca", "cg")),
    _form("cp.async.mbarrier.arrive", "noinc", _OWN, "!b64"),
    _form("cp.async.bulk.wait_group", "read"),
    *(
        _form(f"cp.async.{word}")
        for word in ("commit_group", "wait_group", "wait_all", "bulk.commit_group")
    ),
    _form(
        "cp.async.bulk.prefetch.tensor",
        f"!{_DIM}",
        "!L2",
        "!global",
        "tile tile::gather4 im2col im2col::w im2col::w::128",
        _HINT,
    ),
    _form("cp.async.bulk.prefetch.L2", "!global", _HINT),
    _form("cp.async.bulk.global.shared::cta", "!bulk_group", _HINT, "cp_mask"),
    _form("cp.async.bulk.shared::cta.global", f"!{_MBAR}", "ignore_oob", _HINT),
    _form("cp.async.bulk.shared::cluster.global", f"!{_MBAR}", "multicast::cluster", _HINT),
    _form("cp.async.bulk.shared::cluster.shared::cta", f"!{_MBAR}"),
    _form(
        "cp.reduce.async.bulk.shared::cluster.shared::cta",
        f"!{_MBAR}",
        f"!{_REDUCE}",
        "!b32 u32 s32 u64",
    ),
    _form(
        "cp.reduce.async.bulk.global.shared::cta",
        "!bulk_group",
        f"!{_REDUCE}",
        "noftz",
        _HINT,
        "!b32 b64 u32 s32 u64 s64 f16 bf16 f32 f64",
    ),
    _form(
        "cp.async.bulk.tensor",
        f"!{_DIM}",
        "!shared::cta shared::cluster",
        "!global",
        "tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs",
        f"!{_MBAR} bulk_group",
        "multicast::cluster",
        "cta_group::1 cta_group::2",
        _HINT,
        rules=(
            _apart("bulk_group", "shared::cluster multicast::cluster cta_group::1 cta_group::2"),
            _apart("bulk_group", "tile::gather4 im2col im2col::w im2col::w::128"),
            _apart(_MBAR, "tile::scatter4 im2col_no_offs"),
            _needs("multicast::cluster", "shared::cluster"),
        ),
    ),
    _form(
        "cp.reduce.async.bulk.tensor",
        f"!{_DIM}",
        "!global",
        "!shared::cta",
        f"!{_REDUCE}",
        "tile im2col_no_offs",
        "!bulk_group",
        _HINT,
    ),
    _form(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release",
        f"!{_SCOPE}",
        "!sync",
        "!aligned",
    ),
    _form(
        "tensormap.replace.tile",
        "!global_address rank box_dim global_dim global_stride element_stride elemtype "
        "interleave_layout swizzle_mode swizzle_atomicity fill_mode",
        "global shared::cta",
        "!b1024",
        "!b32 b64",
    ),
    _form("mbarrier.init", _OWN, "!b64"),
    _form("mbarrier.inval", _OWN, "!b64"),
    *(
        _form(
            f"mbarrier.{word}",
            "relaxed",
            "cta cluster",
            f"{_OWN} shared::cluster",
            "!b64",
            rules=(_needs("relaxed", "cta cluster"), _needs("cta cluster", "relaxed")),
        )
        for word in ("expect_tx", "complete_tx")
    ),
    *(
        _form(
            f"mbarrier.{word}",
            "expect_tx noComplete",
            "release relaxed",
            "cta cluster",
            f"{_OWN} shared::cluster",
            "!b64",
            rules=(
                _needs("release relaxed", "cta cluster"),
                _needs("cta cluster", "release relaxed"),
                _apart("noComplete", "relaxed cluster shared::cluster"),
            ),
        )
        for word in ("arrive", "arrive_drop")
    ),
    *(
        _form(
            f"mbarrier.{word}",
            "parity",
            "acquire relaxed",
            "cta cluster",
            _OWN,
            "!b64",
            rules=(
                _needs("acquire relaxed", "cta cluster"),
                _needs("cta cluster", "acquire relaxed"),
            ),
        )
        for word in ("test_wait", "try_wait")
    ),
    _form("mbarrier.pending_count", "!b64"),
    _form("barrier.cluster.arrive", "release relaxed", "aligned"),
    _form("barrier.cluster.wait", "acquire", "aligned"),
    _form("bar.warp.sync"),
    _form("barrier.warp.sync"),
    *(
        _form(f"{word}.{rest}", *(("aligned",) if word.startswith("barrier") else ()), *more)
        for word in ("bar.cta", "bar", "barrier.cta", "barrier")
        for rest, more in (
            ("sync", ()),
            ("arrive", ()),
            ("red.popc", ("!u32",)),
            ("red.and", ("!pred",)),
            ("red.or", ("!pred",)),
        )
    ),
    _form("membar.proxy", "!alias"),
    _form("membar", "!cta gl sys"),
    _form("fence.mbarrier_init", "!release", "!cluster"),
    _form("fence.proxy.alias"),
    _form("fence.proxy.async", "global shared::cta shared::cluster"),
    _form("fence.proxy.tensormap::generic", "!acquire release", f"!{_SCOPE}"),
    _form(
        "fence.proxy.async::generic",
        "!acquire release",
        "!sync_restrict::shared::cluster sync_restrict::shared::cta",
        "!cluster",
        rules=(
            _needs("acquire", "sync_restrict::shared::cluster"),
            _needs("release", "sync_restrict::shared::cta"),
        ),
    ),
    _form(
        "fence",
        "sc acq_rel acquire release",
        "sync_restrict::shared::cluster sync_restrict::shared::cta",
        f"!{_SCOPE}",
        rules=(
            _needs("sync_restrict::shared::cluster", "acquire"),
            _needs("sync_restrict::shared::cta", "release"),
            _needs("sync_restrict::shared::cluster sync_restrict::shared::cta", "cluster"),
        ),
    ),
    _form("griddepcontrol", "!launch_dependents wait"),
    _form(
        "clusterlaunchcontrol.try_cancel.async",
        "shared::cta",
        f"!{_MBAR}",
        "multicast::cluster::all",
        "!b128",
    ),
    _form("clusterlaunchcontrol.query_cancel.is_canceled", "!pred", "!b128"),
    _form("clusterlaunchcontrol.query_cancel.get_first_ctaid", "!v4", "!b32", "!b128"),
    *(
        _form(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}", "!b32", "!b128")
        for axis in "xyz"
    ),
    _form("setmaxnreg", "!inc dec", "!sync", "!aligned", "!u32"),
    _form("nanosleep", "!u32"),
    _form("pmevent", "mask"),
    _form("trap"),
    _form("brkpt"),
    _form("exit"),
    _form("ret", "uni"),
    _form("bra", "uni"),
    _form("brx", "!idx", "uni"),
    _form("call", "uni"),
    _form("elect", "!sync"),
    _form("activemask", "!b32"),
)


@cache
def _by_first_word() -> dict[str, tuple[Form, ...]]:
    """The forms, the most specific first."""
    found: dict[str, list[Form]] = {}
    for form in sorted(FORMS, key=lambda f: -len(f.head)):
        found.setdefault(form.head[0], []).append(form)
    return {word: tuple(forms) for word, forms in found.items()}


@cache
def why_not(opcode: tuple[str, ...]) -> str | None:
    """What is wrong with the modifiers of an opcode; None for opcodes that are not listed here."""
    forms = _by_first_word().get(opcode[0])
    if forms is None:
        word = foreign(opcode)
        return None if word is None else f".{word} is no modifier of {opcode[0]}"
    form = next((f for f in forms if _begins(opcode, f.head)), None)
    if form is None:
        return f".{opcode[1]} is no modifier of {opcode[0]}" if len(opcode) > 1 else "it lacks one"
    rest = list(opcode)
    for word in form.head:
        rest.remove(word)
    taken: dict[int, str] = {}
    for word in rest:
        slots = [i for i, (words, _) in enumerate(form.slots) if word in words]
        if not slots:
            return f".{word} is no modifier of {'.'.join(form.head)}"
        slot = next((i for i in slots if i not in taken), None)
        if slot is None:
            other = taken[slots[0]]
            if other == word:
                return f".{word} is given twice"
            return f".{other} and .{word} exclude each other"
        taken[slot] = word
    for index, (words, required) in enumerate(form.slots):
        if required and index not in taken:
            return f"it needs one of .{', .'.join(sorted(words))}"
    given = frozenset(opcode)
    return next((text for rule in form.rules if (text := rule(given)) is not None), None)


def _begins(opcode: tuple[str, ...], head: tuple[str, ...]) -> bool:
    """Whether an opcode has the words of a head: in front where they follow each other there."""
    return opcode[: len(head)] == head
