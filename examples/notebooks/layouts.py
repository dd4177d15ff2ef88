# /// script
# requires-python = ">=3.11"
# [tool.marimo.display]
# theme = "system"
# ///
"""Layouts and their algebra: which lane holds which element, as a value to compute with.

    marimo edit examples/notebooks/layouts.py

docs/notebooks.md says more; tests/examples/test_notebooks.py runs it.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Layouts and their algebra", width="medium")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    from fragir import isa
    from fragir.errors import FragirError
    from fragir.layout import (
        Layout,
        blocked_product,
        complement,
        compose,
        conflicts,
        inverse,
        quotient,
        read_layout,
        swizzled,
        to_linear,
        write_layout,
        zipped_divide,
    )

    return (
        FragirError,
        Layout,
        blocked_product,
        complement,
        compose,
        conflicts,
        inverse,
        isa,
        mo,
        np,
        quotient,
        read_layout,
        swizzled,
        to_linear,
        write_layout,
        zipped_divide,
    )


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # Layouts and their algebra

    A tensor-core instruction spreads a matrix over the lanes of a warp: every lane holds a few
    elements, its fragment. *Which lane holds which element* is a layout. Here it is a value: it
    can be printed, drawn, asked both ways, composed, divided, inverted and written in other
    tools' notations.
    """)
    return


@app.cell
def _(FragirError, mo):
    def shown(picture):
        """A picture as a part of the page: cells say more when they are pointed at."""
        return mo.Html(f'<div style="overflow:auto;max-height:34rem">{picture.svg}</div>')

    def attempt(function, *arguments, **options):
        """What a function gives, or the words with which it refuses."""
        try:
            return function(*arguments, **options)
        except FragirError as error:
            return f"refused: {error}"

    return attempt, shown


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## A fragment, digit by digit

    An axis is a list of *modes*, `size:(row stride, column stride)`, fastest first. Each is a
    digit of the coordinate: lane 13 is 1 + 4 · 3, so its digits are 1 and 3. Change the text, or
    the lane.
    """)
    return


@app.cell
def _(mo):
    text = mo.ui.text(
        "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]", label="layout", full_width=True
    )
    view = mo.ui.dropdown(["matrix", "hardware"], "matrix", label="view")
    colour = mo.ui.dropdown(["lane", "register", "element"], "lane", label="colour")
    mo.vstack([text, mo.hstack([view, colour], justify="start")])
    return colour, text, view


@app.cell
def _(attempt, colour, mo, read_layout, shown, text, view):
    fragment = attempt(read_layout, text.value)
    mo.stop(isinstance(fragment, str), mo.callout(fragment, "danger"))
    shown(fragment.picture(view.value, colour=colour.value, bits=32))
    return (fragment,)


@app.cell
def _(fragment, mo):
    lane = mo.ui.slider(0, fragment.size("lane") - 1, value=13, label="lane", show_value=True)
    element = mo.ui.slider(
        0, fragment.size("element") - 1, value=3, label="element", show_value=True
    )
    mo.hstack([lane, element], justify="start")
    return element, lane


@app.cell
def _(element, fragment, lane, mo):
    point = fragment(lane=lane.value, element=element.value)
    holders = fragment.inverse(*point)
    held = ", ".join(f"lane {each['lane']} as its element {each['element']}" for each in holders)
    mo.md(f"""
    Element {element.value} of lane {lane.value} is the matrix's element **{point}**;
    that is held by {held}.
    """)
    return holders, point


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Sizes need not be powers of two

    `wgmma` takes every N that is a multiple of 8, up to 256. Only six of these 32 are powers of
    two.
    """)
    return


@app.cell
def _(mo):
    columns = mo.ui.slider(8, 256, 8, value=24, label="N", show_value=True)
    columns
    return (columns,)


@app.cell
def _(columns, isa, shown):
    wgmma = isa.lookup(f"wgmma.mma_async.sync.aligned.m64n{columns.value}k16.f32.f16.f16")
    sums = wgmma.operands["d"].layout
    shown(sums.picture(colour="warp"))
    return sums, wgmma


@app.cell
def _(attempt, mo, sums, to_linear):
    bases = attempt(to_linear, sums)
    mo.md(f"""
    The layout, and the same over F2, where there is such a thing (a base for every bit of every
    coordinate, as in Triton's linear layouts):

    ```text
    {sums}
    {bases}
    ```
    """)
    return (bases,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Product and quotient: tiles from fragments

    `blocked_product(fragment, grid)` puts a fragment at every point of a grid. `quotient` takes
    it out again: what is left is the grid, in fragments.
    """)
    return


@app.cell
def _(mo):
    warp_rows = mo.ui.slider(1, 4, value=2, label="warps below each other", show_value=True)
    warp_cols = mo.ui.slider(1, 4, value=2, label="beside each other", show_value=True)
    repeats = mo.ui.slider(1, 6, value=3, label="fragments of a warp", show_value=True)
    mo.hstack([warp_rows, warp_cols, repeats], justify="start")
    return repeats, warp_cols, warp_rows


@app.cell
def _(Layout, blocked_product, fragment, quotient, repeats, shown, warp_cols, warp_rows):
    grid = Layout.parse(
        f"warp [{warp_rows.value}:(1,0) {warp_cols.value}:(0,{repeats.value})]"
        f" element [{repeats.value}:(0,1)]"
    )
    tile = blocked_product(fragment, grid)
    rest = quotient(tile, fragment)
    shown(tile.picture(colour="warp"))
    return rest, tile


@app.cell
def _(mo, rest, tile):
    mo.md(f"""
    ```text
    tile      {tile}
    quotient  {rest}
    ```
    {tile.shape[0]} × {tile.shape[1]} elements, {
        "each held once" if tile.is_bijection() else "some held several times"
    }.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Composition: which byte does a lane read?

    Shared memory maps (row, col) to bytes, a fragment maps (lane, element) to (row, col). Composed,
    they say which byte each lane reads. A swizzle gives memory digits that are *exclusive-ored*
    (`^`); it composes like any other layout.
    """)
    return


@app.cell
def _(mo):
    width = mo.ui.dropdown(
        {"none": 0, "32 bytes": 32, "64 bytes": 64, "128 bytes": 128}, "128 bytes", label="swizzle"
    )
    width
    return (width,)


@app.cell
def _(Layout, compose, conflicts, fragment, mo, swizzled, width):
    plain = Layout.parse("row [64:128] col [64:2] dims (byte)")
    memory = swizzled((64, 64), 16, width.value) if width.value else plain
    reads = compose(memory, fragment)
    extra = conflicts([memory(row=row, col=0)[0] for row in range(8)], 16)
    mo.md(f"""
    ```text
    memory          {memory}
    read by a lane  {reads}
    ```
    `ldmatrix` reads eight rows of 16 bytes at once; passes over the banks: **{1 + extra}**.
    """)
    return extra, memory, reads


@app.cell
def _(Layout, memory, shown):
    rows_of_16_bytes = Layout.parse("lane [8:(1,0)] element [8:(0,1)]")
    shown(memory.picture("memory", bits=16, access=rows_of_16_bytes))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Inverse, complement, division

    What is exact is answered; what is not is refused, with the mode that is to blame.
    """)
    return


@app.cell
def _(mo):
    cut = mo.ui.slider(1, 16, value=8, label="columns of a part", show_value=True)
    cut
    return (cut,)


@app.cell
def _(Layout, attempt, complement, cut, fragment, inverse, mo, zipped_divide):
    back = inverse(fragment)
    missing = attempt(complement, Layout.parse("lane [4:(0,2) 8:(1,0)]"), (16, 8))
    parts = attempt(
        zipped_divide, Layout.parse("row [16:128] col [64:2] dims (byte)"), col=cut.value
    )
    mo.md(f"""
    | | |
    |---|---|
    | the inverse of the fragment | `{back}` |
    | what its lanes miss of 16 × 8 | `{missing}` |
    | rows of 64 in parts of {cut.value} columns | `{parts}` |
    """)
    return back, missing, parts


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Other tools' notations

    CuTe's `shape:stride`, bases over F2, Triton's encodings and the formulas of the PTX ISA say
    the same; each text is read back to the same layout.
    """)
    return


@app.cell
def _(attempt, fragment, mo, read_layout, write_layout):
    notations = {
        name: attempt(write_layout, fragment, name) for name in ("cute", "f2", "ttg", "formula")
    }
    returned = {
        name: not text.startswith("refused")
        and read_layout(text, fragment.shape if name == "ttg" else None).equivalent(fragment)
        for name, text in notations.items()
    }
    lines = "\n".join(
        f"{name:9}{text}".replace("\n", "\n" + 9 * " ") for name, text in notations.items()
    )
    mo.md(f"```text\n{lines}\n```")
    return notations, returned


@app.cell
def _(fragment, np):
    # The same by numpy alone: every slot's point, and every point once.
    table = np.array(
        [
            [fragment(lane=at, element=i) for i in range(fragment.size("element"))]
            for at in range(fragment.size("lane"))
        ]
    )
    found = len(np.unique(table.reshape(-1, 2), axis=0))
    f"{found} different points, {fragment.shape[0] * fragment.shape[1]} elements"
    return found, table


if __name__ == "__main__":
    app.run()
