# /// script
# requires-python = ">=3.11"
# [tool.marimo.display]
# theme = "system"
# ///
"""From matmul to PTX: one product, level by level, and four judges of what comes out.

    marimo edit examples/notebooks/matmul_to_ptx.py

docs/notebooks.md says more; tests/examples/test_notebooks.py runs it.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="From matmul to PTX", width="medium")


@app.cell
def _():
    import re
    from collections import Counter

    import marimo as mo
    import numpy as np

    import fragir
    from fragir import isa
    from fragir.errors import FragirError
    from fragir.isa.query import View
    from fragir.reference import compare, evaluate

    return Counter, FragirError, View, compare, evaluate, fragir, isa, mo, np, re


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # From matmul to PTX

    `C = A B`, cut into tiles, every tile with a layout, then what one lane does, then PTX. Choose
    the sizes, the type and the machine; everything below follows.
    """)
    return


@app.cell
def _(mo):
    m = mo.ui.slider(8, 160, 8, value=72, label="M", show_value=True)
    n = mo.ui.slider(8, 160, 8, value=96, label="N", show_value=True)
    k = mo.ui.slider(8, 160, 8, value=40, label="K", show_value=True)
    kind = mo.ui.dropdown(["f16", "bf16", "s8"], "f16", label="type of A and B")
    target = mo.ui.dropdown(["sm_75", "sm_80", "sm_89", "sm_90a"], "sm_80", label="target")
    mo.vstack([mo.hstack([m, n, k], justify="start"), mo.hstack([kind, target], justify="start")])
    return k, kind, m, n, target


@app.cell
def _(k, kind, m, n):
    # The types of MLIR, those of the results, and what an array of numpy holds.
    given, summed, stored = {
        "f16": ("f16", "f32", "float16"),
        "bf16": ("bf16", "f32", "uint16"),
        "s8": ("i8", "i32", "int8"),
    }[kind.value]
    a_type, b_type, c_type = (
        *(f"memref<{m.value}x{k.value}x{given}>", f"memref<{k.value}x{n.value}x{given}>"),
        f"memref<{m.value}x{n.value}x{summed}>",
    )
    program = (
        f"func.func @product(%a: {a_type}, %b: {b_type}, %c: {c_type}) {{\n"
        f"  frag.matmul %a, %b into %c : {a_type}, {b_type} into {c_type}\n"
        "  func.return\n}\n"
    )
    return program, stored, summed


@app.cell
def _(FragirError, fragir, mo, program, target):
    levels = {"the program": program}
    try:
        kernel = fragir.compile(
            program,
            target=target.value,
            observe=lambda name, module: levels.update({f"after {name}": str(module)}),
        )
    except FragirError as error:
        kernel = None
        refusal = mo.callout(str(error), "danger")
    mo.stop(kernel is None, refusal if kernel is None else None)
    levels["PTX"] = kernel.ptx
    return kernel, levels


@app.cell
def _(levels, mo):
    def listing(text, most=400):
        lines = text.rstrip().splitlines()
        rest = [f"... {len(lines) - most} more lines"] if len(lines) > most else []
        shown = "\n".join([*lines[:most], *rest])
        return mo.Html(
            '<pre style="overflow:auto;max-height:36rem;font-size:12px">'
            + shown.replace("&", "&amp;").replace("<", "&lt;")
            + "</pre>"
        )

    mo.accordion(
        {f"{name}: {text.count(chr(10))} lines": listing(text) for name, text in levels.items()}
    )
    return


@app.cell
def _(Counter, isa, kernel, mo, re):
    # Which tensor-core instructions the PTX has, as the table knows them.
    opcodes = re.findall(r"^ +((?:wgmma\.mma_async|mma\.sync)\.\S+)", kernel.ptx, re.MULTILINE)
    used = Counter(isa.lookup(opcode).mnemonic for opcode in opcodes)
    mnemonic = next(iter(used))
    mo.md(
        "## The instruction\n\n"
        + "\n".join(f"* {count} times `{name}` in the PTX" for name, count in used.items())
        + f"\n\n{kernel.block[0]} threads a block, {kernel.grid({})} blocks."
    )
    return mnemonic, used


@app.cell
def _(View, isa, mnemonic, mo):
    instruction = isa.lookup(mnemonic)
    in_registers = {
        name: View.of(instruction, name)
        for name, operand in instruction.operands.items()
        if operand.registers.cls != "descriptor" and name != "c"
    }
    mo.ui.tabs(
        {
            f"operand {name}, {view.shape[0]} x {view.shape[1]}": mo.Html(
                f'<div style="overflow:auto;max-height:34rem">{view.picture().svg}</div>'
            )
            for name, view in in_registers.items()
        }
    )
    return (in_registers,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Four judges

    The program's meaning in numpy with a proven bound, the PTX on the emulator with every check on,
    ptxas, and numpy's own product.
    """)
    return


@app.cell
def _(k, kind, m, n, np, stored, summed):
    rng = np.random.default_rng(0)
    shapes = ((m.value, k.value), (k.value, n.value))
    if kind.value == "s8":
        arrays = [rng.integers(-128, 128, shape).astype(stored) for shape in shapes]
        values = [array.astype(np.float64) for array in arrays]
    else:
        drawn = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        if kind.value == "bf16":  # the upper half of an f32
            arrays = [(array.view(np.uint32) >> 16).astype(stored) for array in drawn]
            values = [(array.astype(np.uint32) << 16).view(np.float32) for array in arrays]
        else:
            arrays = [array.astype(stored) for array in drawn]
            values = arrays
        values = [value.astype(np.float64) for value in values]
    exact = values[0] @ values[1]
    result = np.zeros(exact.shape, "int32" if summed == "i32" else "float32")
    return arrays, exact, result


@app.cell
def _(arrays, compare, evaluate, exact, fragir, kernel, np, program, result, summed, target):
    run = kernel(*arrays, result, on="emulator", check=True)
    function = next(iter(fragir.parse(program).ops))
    meaning = evaluate(function, [*arrays, np.zeros_like(result)], target=target.value)[2]
    verdict = compare(meaning, result, "s32" if summed == "i32" else "f32")
    error = float(np.abs(result - exact).max())
    return error, run, verdict


@app.cell
def _(FragirError, kernel):
    try:
        assembled = next(iter(kernel.assembled.entries.values()))
        registers = f"{assembled.registers} registers, {assembled.spill_stores} bytes spilled"
    except FragirError as missing:  # no ptxas here
        assembled = None
        registers = str(missing)
    return assembled, registers


@app.cell
def _(error, mo, registers, run, verdict):
    limits = f"largest error {verdict.max_error:.3g}, its bound {verdict.bound:.3g}"
    mo.md(f"""
    | judge | verdict |
    |---|---|
    | reference | {verdict.verdict}: {limits} |
    | emulator | {len(run.findings)} findings, {run.statistics.mma} tensor-core instructions run |
    | ptxas | {registers} |
    | numpy | largest difference from a float64 product: {error:.3g} |
    """)
    return


if __name__ == "__main__":
    app.run()
