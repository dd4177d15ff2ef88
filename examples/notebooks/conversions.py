# /// script
# requires-python = ">=3.11"
# [tool.marimo.display]
# theme = "system"
# ///
"""Write a conversion and price it: two layouts, the plan between them, its PTX, and the banks.

    marimo edit examples/notebooks/conversions.py

docs/notebooks.md says more; tests/examples/test_notebooks.py runs it.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Write a conversion and price it", width="medium")


@app.cell
def _():
    import re
    from collections import Counter

    import marimo as mo
    import numpy as np

    import fragir
    from fragir.errors import FragirError
    from fragir.isa.features import features_of
    from fragir.isa.layout_texts import read_layout
    from fragir.layout import (
        SharedLayout,
        blocked,
        sources,
        swizzle_of,
        transposed,
        wavefronts,
    )
    from fragir.layout.planning.planner import plan_conversion
    from fragir.layout.planning.report import report_of

    return (
        Counter,
        FragirError,
        SharedLayout,
        blocked,
        features_of,
        fragir,
        mo,
        np,
        sources,
        plan_conversion,
        re,
        read_layout,
        report_of,
        swizzle_of,
        transposed,
        wavefronts,
    )


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Write a conversion and price it

    A tile of registers is wanted in another layout than it has. What moves, through what, and what
    does it cost? The planner finds the cheapest way that it knows and says what no way can
    undercut; the compiler emits exactly these instructions.
    """)
    return


@app.cell
def _(FragirError, blocked, mo, read_layout, transposed):
    def attempt(function, *arguments, **options):
        """What a function gives, or the words with which it refuses."""
        try:
            return function(*arguments, **options)
        except FragirError as error:
            return f"refused: {error}"

    def operand(name, mnemonic):
        return read_layout(f"{mnemonic}:{name}", (64, 64), (4, 1))

    half = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    narrow = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    rows = blocked((64, 64), {"element": (1, 8), "lane": 32, "warp": 4})
    pairs = {
        "sums of fp8 become A": (operand("d", narrow), operand("a", narrow), 8),
        "sums of f16 become A": (operand("d", half), operand("a", half), 16),
        "sums are stored by rows of 16 bytes": (operand("d", half), rows, 16),
        "sums are transposed": (operand("d", half), transposed(operand("d", half)), 16),
    }
    preset = mo.ui.dropdown(pairs, next(iter(pairs)), label="start from", full_width=True)
    preset
    return attempt, pairs, preset


@app.cell
def _(mo, preset):
    _before, _after, _bits = preset.value
    source_text = mo.ui.text(str(_before), label="from", full_width=True)
    target_text = mo.ui.text(str(_after), label="to", full_width=True)
    width = mo.ui.dropdown({"8": 8, "16": 16, "32": 32}, str(_bits), label="bits of an element")
    machine = mo.ui.dropdown(
        ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a"], "sm_90a", label="target"
    )
    mo.vstack([source_text, target_text, mo.hstack([width, machine], justify="start")])
    return machine, source_text, target_text, width


@app.cell
def _(
    attempt, features_of, machine, mo, plan_conversion, read_layout, source_text, target_text, width
):
    source = attempt(read_layout, source_text.value)
    target = attempt(read_layout, target_text.value)
    wrong = [each for each in (source, target) if isinstance(each, str)]
    mo.stop(bool(wrong), mo.callout("\n".join(wrong), "danger"))
    planned = attempt(plan_conversion, source, target, width.value, features_of(machine.value))
    mo.stop(isinstance(planned, str), mo.callout(planned, "danger"))
    return planned, source, target


@app.cell
def _(features_of, machine, mo, planned, report_of):
    from fragir.layout.planning.report import WORDS, meaning

    report = report_of(planned, features_of(machine.value))
    steps = "\n".join(f"| `{name}` | {count} | {meaning(name)} |" for name, count in report.steps)
    told = "\n".join(f"* {reason}" for reason in report.reasons)
    mo.md(
        f"## The plan: {WORDS[planned.way]}\n\n"
        f"| step | count | of each thread |\n|---|---|---|\n{steps}\n\n"
        f"**{report.cost:g}** half cycles of an SM a warp; no plan has fewer than"
        f" **{report.least:g}**. Barriers: {report.barriers}, scratch memory: {report.scratch}"
        f" bytes.\n\n{told}"
    )
    return (report,)


@app.cell
def _(mo, planned):
    mo.Html(
        f'<div style="overflow:auto;max-height:34rem">{planned.picture().svg}</div>'
        "<p>Colours are those of the lanes that hold an element before; framed is what changes its"
        " lane.</p>"
    )
    return


@app.cell
def _(mo, np, source, sources, target):
    # What moves, counted from the two layouts alone.
    moved = sources(source, target)
    slots = {name: target.sizes.get(name, 1) for name in ("warp", "lane", "element")}
    journeys = np.array(
        [
            [(warp, lane), moved.source(warp=warp, lane=lane, element=element)[:2]]
            for warp in range(slots["warp"])
            for lane in range(slots["lane"])
            for element in range(slots["element"])
        ]
    )
    other_warp = int((journeys[:, 0, 0] != journeys[:, 1, 0]).sum())
    other_lane = int((journeys[:, 0] != journeys[:, 1]).any(axis=1).sum()) - other_warp
    mo.md(f"""
    Of {len(journeys)} elements, {other_lane} change their lane inside of the warp, {other_warp}
    change their warp, {len(journeys) - other_lane - other_warp} stay in their lane.
    """)
    return journeys, other_lane, other_warp


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The same on every machine

    `stmatrix` came with sm_90; before, a transposition is stored word by word.
    """)
    return


@app.cell
def _(features_of, mo, plan_conversion, report_of, source, target, width):
    prices = {}
    for sm in ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a"):
        found = report_of(
            plan_conversion(source, target, width.value, features_of(sm)), features_of(sm)
        )
        prices[sm] = {
            "half cycles a warp": found.cost,
            "instructions": found.instructions,
            "steps": " + ".join(f"{count} {name}" for name, count in found.steps) or "none",
        }
    mo.ui.table([{"target": sm, **row} for sm, row in prices.items()], selection=None)
    return (prices,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## From the plan to PTX

    `frag.convert` between two tiles with written layouts. The kernel loads a matrix in the first
    layout, converts, and stores from the second: what comes out must be what went in.
    """)
    return


@app.cell
def _(source, target, width):
    rows_, cols_ = source.shape
    element_type = f"i{width.value}"
    memory_type = f"memref<{rows_}x{cols_}x{element_type}>"
    tile_types = [
        f'!frag.tile<{rows_}x{cols_}x{element_type}, #frag.layout<"{layout}">>'
        for layout in (source, target)
    ]
    warps = max(source.sizes.get("warp", 1), target.sizes.get("warp", 1))
    program = f"""\
    func.func @convert(%a: {memory_type}, %b: {memory_type})
        attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %t = frag.load %a[0, 0] : {memory_type} -> {tile_types[0]}
      %u = frag.convert %t : {tile_types[0]} -> {tile_types[1]}
      frag.store %u, %b[0, 0] : {tile_types[1]}, {memory_type}
      func.return
    }}
    """.replace("\n    ", "\n").lstrip()
    return cols_, element_type, program, rows_


@app.cell
def _(attempt, fragir, machine, mo, program):
    kernel = attempt(fragir.compile, program, target=machine.value)
    mo.stop(isinstance(kernel, str), mo.callout(kernel, "danger"))
    # The lines of PTX that come from the frag.convert.
    line = program[: program.index("frag.convert")].count("\n") + 1
    begins = [origin.ptx_line for origin in kernel.origins if origin.line == line]
    ends = [origin.ptx_line for origin in kernel.origins if origin.line > line]
    ptx_lines = kernel.ptx.splitlines()
    conversion_ptx = ptx_lines[begins[0] - 1 : ends[0] - 1] if begins else []
    mo.accordion(
        {
            "the program": mo.md(f"```text\n{program}\n```"),
            f"the PTX of the conversion, {len(conversion_ptx)} lines of {len(ptx_lines)}": mo.md(
                "```text\n" + "\n".join(conversion_ptx) + "\n```"
            ),
        }
    )
    return conversion_ptx, kernel


@app.cell
def _(Counter, conversion_ptx, mo, re, report):
    in_ptx = Counter(re.findall(r"^ +([a-z]\w*)[. ]", "\n".join(conversion_ptx), re.MULTILINE))
    planned_counts = Counter()
    for step, count in report.steps:
        planned_counts[step.partition(".")[0]] += count
    mo.md(
        "Planned and in the PTX: "
        + (
            ", ".join(
                f"{count} and {in_ptx[name]} `{name}`" for name, count in planned_counts.items()
            )
            or "nothing, registers change their names"
        )
    )
    return in_ptx, planned_counts


@app.cell
def _(cols_, element_type, kernel, mo, np, rows_):
    rng = np.random.default_rng(0)
    given = rng.integers(-100, 100, (rows_, cols_)).astype(element_type.replace("i", "int"))
    result = np.zeros_like(given)
    run = kernel(given, result, on="emulator", check=True)
    same = bool((result == given).all())
    mo.md(
        f"On the emulator, every check on: **{'the same matrix' if same else 'another matrix'}**,"
        f" {len(run.findings)} findings, {run.statistics.instructions['shfl']} shuffles."
    )
    return given, result, run, same


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Banks

    What goes through shared memory should not wait for its banks. 32 lanes read the words of an A
    fragment (16 x 16, f16) from rows of 128 bytes, which begin in the same bank; with padding, or a
    swizzle, they do not.
    """)
    return


@app.cell
def _(mo):
    pitch = mo.ui.slider(128, 192, 16, value=128, label="bytes from row to row", show_value=True)
    swizzle = mo.ui.dropdown(
        {"none": 0, "32 bytes": 32, "64 bytes": 64, "128 bytes": 128}, "none", label="swizzle"
    )
    mo.hstack([pitch, swizzle], justify="start")
    return pitch, swizzle


@app.cell
def _(SharedLayout, pitch, read_layout, swizzle, swizzle_of, wavefronts):
    memory = SharedLayout(
        read_layout(f"row [16:{pitch.value}] col [16:2] dims (byte)"), swizzle_of(swizzle.value)
    )
    fragment = read_layout("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]")

    def passes(place):
        """Passes over the banks of each 32-bit load of the fragment, by where an element stands."""
        points = [[fragment(lane=lane, element=i) for lane in range(32)] for i in range(0, 8, 2)]
        return [wavefronts([place(row, col) for row, col in load], 4) for load in points]

    taken = passes(lambda row, col: memory(row=row, col=col))
    return fragment, memory, passes, taken


@app.cell
def _(attempt, fragment, memory, mo, taken):
    drawn = attempt(
        lambda: (memory.swizzle * memory.layout).picture("memory", bits=16, access=fragment)
    )
    picture = drawn if isinstance(drawn, str) else drawn.svg
    mo.vstack(
        [
            mo.md(f"Passes over the banks of each load: **{max(taken)}**. Framed: who collides."),
            mo.Html(f'<div style="overflow:auto;max-height:30rem">{picture}</div>'),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
