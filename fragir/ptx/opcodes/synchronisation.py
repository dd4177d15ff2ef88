"""Control flow, barriers, fences, mbarriers, launches (PTX ISA 9.2, sections 9.7.12 and
9.7.13).
"""

from __future__ import annotations

from fragir.ptx.opcodes.row import Columns, Opcode, needs, rule_apart

# -- barriers -------------------------------------------------------------------------------------

_BLOCK: Columns = {"ends": "barrier", "beside": "all any"}


def _block_barrier(name: str, more: str) -> tuple[Opcode, ...]:
    """bar or barrier; `more`: words that go with all of them."""
    return (
        Opcode(f"{name}.sync", f"{more} a{{, b}}", **_BLOCK),
        Opcode(f"{name}.arrive", f"{more} a, b", **_BLOCK),
        Opcode(f"{name}.red.popc", f"{more}.u32 d, a{{, b}}, p:pred", **_BLOCK),
        *(
            Opcode(f"{name}.red.{how}", f"{more}.pred d, a{{, b}}, p", **_BLOCK)
            for how in ("and", "or")
        ),
    )


_ASYNC = "sync_restrict::shared::cluster sync_restrict::shared::cta"
_RESTRICTED = (
    needs("sync_restrict::shared::cluster", "acquire"),
    needs("sync_restrict::shared::cta", "release"),
    needs(_ASYNC, "cluster"),
)
_SHARED = "shared shared::cta shared::cluster"
_GLOBAL = "what .global does there is not documented"
_ONE_SIDE = "sync_restrict::shared::cluster|sync_restrict::shared::cta"
_BARRIERS: tuple[Opcode, ...] = (
    *_block_barrier("bar", ""),
    *_block_barrier("bar.cta", ""),
    *_block_barrier("barrier", "{.aligned}"),
    *_block_barrier("barrier.cta", "{.aligned}"),
    Opcode("barrier.cluster.arrive", "{.release|relaxed}{.aligned}", ends="cluster barrier"),
    Opcode("barrier.cluster.wait", "{.acquire}{.aligned}", ends="cluster barrier"),
    Opcode("bar.warp.sync", "members", step="meet", together="members"),
    Opcode("membar", ".cta|gl|sys", step="fence", fence="memory"),
    Opcode("membar.proxy", ".alias", step="fence", fence="alias"),
    # since ptxas 13.5, whose machine code is that of fence.proxy.async
    Opcode("membar.proxy.async", "", step="fence", fence="asynchronous"),
    Opcode(
        "fence",
        f"{{.sc|acq_rel|acquire|release}}{{.{_ONE_SIDE}}}.SCOPE",
        step="fence",
        rules=_RESTRICTED,
        fence="memory",
    ),
    Opcode(
        "fence.mbarrier_init",
        ".release.cluster",
        step="fence",
        beside=_ASYNC,
        fence="initialisations",
    ),
    Opcode("fence.proxy.alias", "", step="fence", beside=_ASYNC, fence="alias"),
    Opcode(
        "fence.proxy.async",
        "{.global|shared::cta|shared::cluster}",
        step="fence",
        beside=_ASYNC,
        fence="asynchronous",
    ),
    Opcode(
        "fence.proxy.tensormap::generic",
        f"""
        .release.SCOPE
        .acquire.SCOPE [a], size
        .release.global.SCOPE ! {_GLOBAL}
        .acquire.global.SCOPE [a], size ! {_GLOBAL}
        """,
        step="fence",
        beside=f"{_ASYNC} {_SHARED}",
        fence="tensor maps",
    ),
    Opcode(
        "fence.proxy.async::generic",
        f".acquire|release.{_ONE_SIDE}.cluster\n"
        f".acquire|release.{_ONE_SIDE}.global.cluster ! {_GLOBAL}",
        step="fence",
        rules=_RESTRICTED,
        beside=_SHARED,
        fence="asynchronous",
    ),
    Opcode("griddepcontrol", ".launch_dependents|wait", step="dependent grids"),
    Opcode("nanosleep", ".u32 ns", step="sleep", polls="always"),
    Opcode("pmevent", "{.mask} n", step="event"),
)

# -- mbarriers ------------------------------------------------------------------------------------

_ORDER = (
    needs("relaxed release acquire", "cta cluster"),
    needs("cta cluster", "relaxed release acquire"),
)
_MBARRIER: Columns = {"bits": "mbarrier", "address": "number", "asynchronous": True}
_MBARRIERS: tuple[Opcode, ...] = (
    Opcode(
        "mbarrier.init",
        "{.OWN}.b64 [m], count",
        step="init mbarrier",
        bits="new mbarrier",
        address="number",
        asynchronous=True,
    ),
    Opcode("mbarrier.inval", "{.OWN}.b64 [m]", step="invalidate mbarrier", **_MBARRIER),
    *(
        Opcode(
            f"mbarrier.{word}",
            "{.relaxed}{.cta|cluster}{.SHARED}.b64 [m], bytes",
            step="expect bytes",
            rules=_ORDER,
            **_MBARRIER,
        )
        for word in ("expect_tx", "complete_tx")
    ),
    *(
        Opcode(
            f"mbarrier.{word}",
            f"{more}{{.release|relaxed}}{{.cta|cluster}}{{.SHARED}}.b64 d_, [m]{count}",
            step="arrive",
            rules=(*_ORDER, rule_apart("noComplete", "relaxed cluster shared::cluster")),
            **_MBARRIER,
        )
        for name in ("arrive", "arrive_drop")
        for word, more, count in (
            (name, "", "{, count}"),
            (name, ".noComplete", ", count"),
            (f"{name}.expect_tx", "", ", bytes"),
        )
    ),
    *(
        Opcode(
            f"mbarrier.{word}",
            "{.parity}{.acquire|relaxed}{.cta|cluster}{.OWN}.b64 d:pred{|q}, [m], state" + more,
            step="wait for phase",
            rules=_ORDER,
            **_MBARRIER,
            polls="always",
        )
        for word, more in (("test_wait", ""), ("try_wait", "{, ns}"))
    ),
    Opcode("mbarrier.pending_count", ".b64 d:u32, state", step="pending count", **_MBARRIER),
)

# -- launch control -------------------------------------------------------------------------------

_LAUNCH_CONTROL: tuple[Opcode, ...] = (
    Opcode(
        "clusterlaunchcontrol.try_cancel.async",
        "{.shared::cta}.TX{.multicast::cluster::all}.b128 [a], [m]",
        step="try to cancel",
        asynchronous=True,
        by_proxy=True,
        takes_cluster=True,
    ),
    Opcode(
        "clusterlaunchcontrol.query_cancel.is_canceled",
        ".pred.b128 d, a",
        step="query cancelled",
        asynchronous=True,
    ),
    Opcode(
        "clusterlaunchcontrol.query_cancel.get_first_ctaid",
        ".v4.b32.b128 d, a",
        step="query cancelled",
        asynchronous=True,
    ),
    *(
        Opcode(
            f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}",
            ".b32.b128 d, a",
            step="query cancelled",
        )
        for axis in "xyz"
    ),
)

# -- collective -----------------------------------------------------------------------------------

_COLLECTIVE: tuple[Opcode, ...] = (
    Opcode(
        "shfl",
        ".sync.up|down|bfly|idx.b32 d{|p}, a, b, c, members",
        step="shuffle",
        bits="shuffle",
        address="same",
        together="members",
        apart=True,
    ),
    Opcode(
        "vote",
        """
        .sync.all|any|uni.pred d, a, members:b32
        .sync.ballot.b32 d, a:pred, members
        """,
        step="vote",
        bits="warp",
        address="number",
        together="members",
        apart=True,
    ),
    Opcode(
        "match",
        """
        .any.sync.b32|b64 d:b32, a, members:b32
        .all.sync.b32|b64 d_:b32{|p}, a, members:b32
        """,
        step="match",
        bits="warp",
        address="number",
        together="members",
        apart=True,
    ),
    Opcode(
        "redux",
        """
        .sync.add|min|max.u32|s32 d, a, members
        .sync.and|or|xor.b32 d, a, members
        .sync.min|max{.abs}{.NaN}.f32 d, a, members:b32
        """,
        step="reduce lanes",
        bits="warp",
        together="members",
        apart=True,
    ),
    Opcode("activemask", ".b32 d", step="active lanes", address="number", apart=True),
    Opcode(
        "elect",
        ".sync d_|p:b32, members:b32",
        step="elect",
        address="number",
        together="members",
        apart=True,
    ),
    *(
        Opcode(
            f"setmaxnreg.{way}",
            ".sync.aligned.u32|s32 n",
            step="set registers",
            together="warp",
            registers=True,
        )
        for way in ("inc", "dec")
    ),
)


# -- control ---------------------------------------------------------------------------------------
# Control flow, and what nobody emulates yet (PTX ISA 9.2, section 9.7.12).

#: The opcode of the pseudo instruction behind a call, where its results arrive.
RESULTS = "results of call"

# -- control --------------------------------------------------------------------------------------

_CONTROL: tuple[Opcode, ...] = (
    Opcode("bra", "{.uni} label", ends="branch"),
    Opcode("brx.idx", "{.uni} a, labels", ends="branch"),
    Opcode("call", "{.uni} ...", ends="call"),
    Opcode(RESULTS, "... ...", bits="results", address="number"),
    Opcode("ret", "{.uni}", ends="return"),
    Opcode("exit", ends="exit"),
    *(Opcode(name, ends="trap") for name in ("trap", "brkpt")),
)

# -- missing --------------------------------------------------------------------------------------

_WHY = {
    "memory of several GPUs": "multimem",
    "textures and surfaces": "tex tld4 txq istypep suld sust sured suq",
    "carry-less products": "clmad",
}
_MISSING: tuple[Opcode, ...] = tuple(
    Opcode(name, "... ...", missing=why) for why, names in _WHY.items() for name in names.split()
)

OPCODES: tuple[Opcode, ...] = (
    *_BARRIERS,
    *_MBARRIERS,
    *_LAUNCH_CONTROL,
    *_COLLECTIVE,
    *_CONTROL,
    *_MISSING,
)
