"""Asynchronous copies and stores, tensor maps (PTX ISA 9.2, section 9.7.9.25 on)."""

from __future__ import annotations

from fragir.ptx.opcodes.row import Columns, Opcode, needs, width

# -- async copy -----------------------------------------------------------------------------------

_REDUCES = "and|or|xor|add|inc|dec|min|max"
_NUMBERS = "b32|b64|u32|s32|u64|s64|f16|bf16|f32|f64"
_SCOPED = "what its scope does is not documented"
_WIDE = "the wide modes of im2col are described by figures only"
_COPY: Columns = {"bits": "copy", "asynchronous": True}
_GROUP: Columns = {"bits": "bulk copy", "asynchronous": True}
_BULK: Columns = {**_GROUP, "by_proxy": True}
_TENSOR: Columns = {**_BULK, "tensor_map": "uses"}
_ASYNC_COPY: tuple[Opcode, ...] = (
    *(
        Opcode(
            f"cp.async.{level}",
            ".OWN.global{.HINT}{.AHEAD} [a], [b], size{, given}{, p?HINT}",
            step="copy",
            **_COPY,
        )
        for level in ("ca", "cg")
    ),
    Opcode("cp.async.commit_group", "", step="commit copies", **_GROUP),
    Opcode("cp.async.wait_group", "n", step="wait for copies", **_GROUP),
    Opcode("cp.async.wait_all", "", step="wait for copies", **_GROUP),
    Opcode("cp.async.mbarrier.arrive", "{.noinc}{.OWN}.b64 [m]", step="copies arrive", **_GROUP),
    Opcode("cp.async.bulk.commit_group", "", step="commit bulk copies", **_BULK),
    Opcode("cp.async.bulk.wait_group", "{.read} n", step="wait for bulk copies", **_BULK),
    Opcode(
        "cp.async.bulk.prefetch.L2", ".global{.HINT} [a], size{, p?HINT}", step="bulk copy", **_BULK
    ),
    Opcode(
        "cp.async.bulk",
        f"""
        .shared::cta.global.TX{{.ignore_oob}}{{.HINT}}\
            [a], [b], size{{, left?ignore_oob}}{{, right?ignore_oob}}, [m]{{, p?HINT}}
        .shared::cluster.global.TX{{.MULTI}}{{.HINT}} [a], [b], size, [m]{{, c?MULTI}}{{, p?HINT}}
        .shared::cluster.shared::cta.TX [a], [b], size, [m]
        .global.shared::cta.bulk_group{{.HINT}}{{.cp_mask}}\
            [a], [b], size{{, p?HINT}}{{, mask?cp_mask}}
        .shared::cta|shared::cluster.global|shared::cta.SCOPE.TX{{.ignore_oob|MULTI}}{{.HINT}}\
            ... ! {_SCOPED}
        .global.shared::cta.SCOPE.bulk_group{{.HINT}}{{.cp_mask}}\
            ... ! {_SCOPED}
        """,
        step="bulk copy",
        beside="b128",
        **_BULK,
    ),
    Opcode(
        "cp.reduce.async.bulk",
        f"""
        .shared::cluster.shared::cta.TX.{_REDUCES}.b32|u32|s32|u64 [a], [b], size, [m]
        .global.shared::cta.bulk_group.{_REDUCES}{{.noftz}}{{.HINT}}.{_NUMBERS}\
            [a], [b], size{{, p?HINT}}
        .shared::cluster.shared::cta.SCOPE.TX.{_REDUCES}.b32|u32|s32|u64 ... ! {_SCOPED}
        .global.shared::cta.SCOPE.bulk_group.{_REDUCES}{{.noftz}}{{.HINT}}.{_NUMBERS}\
            ... ! {_SCOPED}
        """,
        step="bulk copy",
        strong=True,
        **_BULK,
    ),
    Opcode(
        "cp.async.bulk.prefetch.tensor",
        f"""
        .DIM.L2.global{{.tile|tile::gather4}}{{.HINT}} [t]{{, p?HINT}}
        .DIM.L2.global.im2col{{.HINT}} [t], offsets{{, p?HINT}}
        .DIM.L2.global.WIDE{{.HINT}} [t], offsets{{, p?HINT}} ! {_WIDE}
        """,
        step="tensor copy",
        **_TENSOR,
    ),
    Opcode(
        "cp.async.bulk.tensor",
        f"""
        .DIM.shared::cta.global{{.tile|tile::gather4}}.TX{{.PAIR}}{{.HINT}}\
            [a], [t], [m]{{, p?HINT}}
        .DIM.shared::cluster.global{{.tile|tile::gather4}}.TX{{.MULTI}}{{.PAIR}}{{.HINT}}\
            [a], [t], [m]{{, blocks?MULTI}}{{, p?HINT}}
        .DIM.shared::cta.global.im2col.TX{{.PAIR}}{{.HINT}} [a], [t], [m], offsets{{, p?HINT}}
        .DIM.shared::cluster.global.im2col.TX{{.MULTI}}{{.PAIR}}{{.HINT}}\
            [a], [t], [m], offsets{{, blocks?MULTI}}{{, p?HINT}}
        .DIM.shared::cta|shared::cluster.global.WIDE.TX{{.MULTI}}{{.PAIR}}{{.HINT}} ... ! {_WIDE}
        .DIM.global.shared::cta{{.tile|tile::scatter4|im2col_no_offs}}.bulk_group{{.HINT}}\
            [t], [a]{{, p?HINT}}
        """,
        step="tensor copy",
        **_TENSOR,
    ),
    Opcode(
        "cp.reduce.async.bulk.tensor",
        f".DIM.global.shared::cta.{_REDUCES}{{.tile|im2col_no_offs}}.bulk_group{{.HINT}}"
        " [t], [a]{, p?HINT}",
        step="tensor copy",
        strong=True,
        **_TENSOR,
    ),
)

# -- async store ----------------------------------------------------------------------------------

_ONLY_ADD = "with .release no operation but .add is documented"
_UNDOCUMENTED = "what it does without .release or an mbarrier is not documented"
_ASYNC_STORE: tuple[Opcode, ...] = (
    Opcode(
        "st.bulk", "{.weak}{.shared::cta} [a], size, b", step="fill", bits="fill", access="store"
    ),
    Opcode(
        "st.async",
        f"""
        {{.weak}}{{.shared::cluster}}.TX{{.v2|v4}}.b32|b64|u32|u64|s32|s64|f32|f64 [a], b, [m]
        {{.weak}}{{.shared::cluster}}.TX.b128 [a], b, [m] ! {_UNDOCUMENTED}
        {{.weak}}{{.shared::cluster}}.TX{{.v2|v4}}.VALUE [a], b ! {_UNDOCUMENTED}
        {{.weak}}.shared|shared::cta{{.TX}}{{.v2|v4}}.VALUE ... ! {_UNDOCUMENTED}
        {{.weak}}{{.global}}.VALUE [a], b ! {_UNDOCUMENTED}
        .gpu|sys{{.global}}.VALUE [a], b ! {_UNDOCUMENTED}
        """,
        step="store later",
        rules=(width,),
        beside="cluster",
        bits="store later",
        asynchronous=True,
    ),
    Opcode(
        "st.async",
        "{.mmio}.release.gpu|sys{.global}.b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
        " [a], b",
        step="store",
        rules=(needs("mmio", "sys"),),
        bits="store",
        access="store",
    ),
    Opcode(
        "red.async",
        f"""
        .relaxed.cluster{{.shared::cluster}}.TX.inc|dec|min|max|add.u32 [a], b, [m]
        .relaxed.cluster{{.shared::cluster}}.TX.min|max|add.s32 [a], b, [m]
        .relaxed.cluster{{.shared::cluster}}.TX.and|or|xor.b32 [a], b, [m]
        .relaxed.cluster{{.shared::cluster}}.TX.add.u64|s64 [a], b, [m]
        .relaxed.cluster{{.shared::cluster}}.TX.add.u32|s32|u64|s64 [a], b ! {_UNDOCUMENTED}
        .relaxed.cluster{{.shared::cluster}}.TX.min|max.u32|s32 [a], b ! {_UNDOCUMENTED}
        .relaxed.cluster{{.shared::cluster}}.TX.inc|dec.u32 [a], b ! {_UNDOCUMENTED}
        .relaxed.cluster{{.shared::cluster}}.TX.and|or|xor.b32 [a], b ! {_UNDOCUMENTED}
        """,
        step="reduce later",
        bits="store later",
        asynchronous=True,
        strong=True,
    ),
    Opcode(
        "red.async",
        f"""
        {{.mmio}}.release.gpu|sys{{.global}}.add.u32|s32|u64|s64 [a], b
        {{.mmio}}.release.gpu|sys{{.global}}.inc|dec|min|max.u32 [a], b ! {_ONLY_ADD}
        {{.mmio}}.release.gpu|sys{{.global}}.min|max.s32 [a], b ! {_ONLY_ADD}
        {{.mmio}}.release.gpu|sys{{.global}}.and|or|xor.b32 [a], b ! {_ONLY_ADD}
        .relaxed.gpu|sys{{.global}}.add.u32|s32|u64|s64 [a], b ! {_UNDOCUMENTED}
        .relaxed.gpu|sys{{.global}}.inc|dec|min|max.u32 [a], b ! {_UNDOCUMENTED}
        .relaxed.gpu|sys{{.global}}.min|max.s32 [a], b ! {_UNDOCUMENTED}
        .relaxed.gpu|sys{{.global}}.and|or|xor.b32 [a], b ! {_UNDOCUMENTED}
        """,
        step="atomic",
        rules=(needs("mmio", "sys"),),
        bits="atomic",
        access="atomic",
        strong=True,
    ),
)

# -- tensor map changes ---------------------------------------------------------------------------

_FIELDS = (
    ".global_address|rank|box_dim|global_dim|global_stride|element_stride|elemtype"
    "|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode"
)
_TENSOR_MAP_CHANGES: tuple[Opcode, ...] = (
    Opcode(
        "tensormap.replace.tile",
        f"{_FIELDS}{{.global|shared::cta}}.b1024.b32|b64 [a], b{{, c}}",
        step="change tensor map",
        tensor_map="changes",
    ),
    Opcode(
        "tensormap.cp_fenceproxy",
        ".global.shared::cta.tensormap::generic.release.SCOPE.sync.aligned [a], [b], size",
        step="copy tensor map",
        beside=_FIELDS.strip(".").replace("|", " "),
        together="warp",
        tensor_map="changes",
    ),
)

OPCODES: tuple[Opcode, ...] = (
    *_ASYNC_COPY,
    *_ASYNC_STORE,
    *_TENSOR_MAP_CHANGES,
)
