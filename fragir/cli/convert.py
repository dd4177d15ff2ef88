"""`fragir convert`: what it takes to bring a tile from one layout into another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fragir.cli.command import FINDING, command, json_option, print_json, print_table, report
from fragir.cli.layout_answers import bits_of, tidy
from fragir.cli.layout_texts import read_any, read_tile, read_warps, show
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.layout import Layout
    from fragir.layout.planning.planner import ConversionPlan
    from fragir.layout.planning.report import ConversionReport

Point = tuple[int, ...]


EXAMPLES = (
    (
        "From an accumulator to the A of the next product:",
        "fragir convert --from mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32:d"
        " --to mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32:a --type e4m3 --tile 64x64"
        " --warps 4",
    ),
    (
        "Before and after, as a picture:",
        "fragir convert --from 'lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]'"
        " --to 'lane [2:(0,4) 16:(1,0)] element [4:(0,1)]' --type f16 --format svg > moved.svg",
    ),
)


@command(examples=EXAMPLES)
@click.option("--from", "source", metavar="LAYOUT", required=True, help="The layout there is.")
@click.option("--to", "target", metavar="LAYOUT", required=True, help="The layout that is wanted.")
@click.option("--type", "element", metavar="T", required=True, help="The element type, as f16.")
@click.option("--tile", callback=read_tile, metavar="MxN", help="The tile both are spread over.")
@click.option(
    "--warps", callback=read_warps, metavar="RxC", help="Warps that an instruction's operand has."
)
@click.option("--target", "machine", metavar="SM", default="sm_90a", show_default=True)
@click.option(
    "--format",
    "style",
    type=click.Choice(("text", "json", "svg", "html")),
    default="text",
    show_default=True,
    help="svg and html draw who holds each element before and after.",
)
@click.option("--full", is_flag=True, help="Leave no repeats of a large picture out.")
@json_option
def main(
    source: str,
    target: str,
    element: str,
    tile: Point | None,
    warps: tuple[int, int] | None,
    machine: str,
    style: str,
    full: bool,
    as_json: bool,
) -> int | None:
    """Plan a conversion between two register layouts: steps, counts, price, what nothing undercuts.

    A LAYOUT is any text that `fragir layout` takes: fragir's own, MNEMONIC:OPERAND,
    cute:SHAPE:STRIDE, ttg:#ttg....<...>, f2:BASES, formula:..., #frag.mma<...>.
    """
    as_json = as_json or style == "json"
    try:
        bits = bits_of(element)
        ends = [_registers(text, tile, warps) for text in (source, target)]
        plan, found = _plan_and_report(ends[0], ends[1], bits, machine)
    except FragirError as error:
        if not as_json:
            raise
        report(error, as_json=True)
        return FINDING
    if as_json:
        print_json(_document(plan, found, element, machine))
    elif style in ("svg", "html"):
        _draw(plan, found, f"{element} on {machine}", style, full)
    else:
        _show(plan, found, element, machine)
    return None


def _draw(plan: ConversionPlan, found: ConversionReport, what: str, style: str, full: bool) -> None:
    from fragir.draw.layouts import conversion_drawing, plan_facts

    facts = ((what, ""), *plan_facts(plan, found))
    show(conversion_drawing(plan.source, plan.target, facts), style, full)


def _registers(text: str, tile: Point | None, warps: tuple[int, int] | None) -> Layout:
    """The layout of registers that a text means. Raises FragirError for any other."""
    from fragir.isa.layout_texts import operand_of
    from fragir.layout import Layout

    spread = warps if operand_of(text) is not None else None
    found = read_any(text, tile, spread)
    if not isinstance(found, Layout):
        raise FragirError(f"{found} is no layout of digits: {found.reason}")
    axes = [name for name in found.names if found.size(name) > 1]
    wrong = next((name for name in axes if name not in ("element", "lane", "warp")), None)
    if wrong is not None:
        raise FragirError(
            f"a conversion is between registers, but {found} has the axis {wrong}",
            hint="the axes of registers are element, lane and warp",
        )
    return tidy(found)


def _plan_and_report(
    source: Layout, target: Layout, bits: int, machine: str
) -> tuple[ConversionPlan, ConversionReport]:
    from fragir.isa.features import features_of
    from fragir.isa.targets import require_target
    from fragir.layout.planning.planner import plan_conversion
    from fragir.layout.planning.report import report_of

    require_target(machine)
    features = features_of(machine)
    plan = plan_conversion(source, target, bits, features)
    return plan, report_of(plan, features)


def _document(
    plan: ConversionPlan, found: ConversionReport, element: str, machine: str
) -> dict[str, object]:
    return {
        "from": str(plan.source),
        "to": str(plan.target),
        "type": element,
        "target": machine,
        "way": plan.way,
        "moves": None if plan.moves is None else plan.moves.reach,
        "cost": {
            "total": found.cost,
            "instructions": found.instructions,
            "shuffles": found.shuffles,
            "store_passes": found.passes[0],
            "load_passes": found.passes[1],
            "barriers": found.barriers,
            "scratch": found.scratch,
        },
        "lower_bound": found.least,
        "steps": [{"op": name, "count": count} for name, count in found.steps],
        "reasons": list(found.reasons),
    }


def _show(plan: ConversionPlan, found: ConversionReport, element: str, machine: str) -> None:
    from fragir.layout.planning.report import WORDS, meaning

    lines = [
        f"from  {plan.source}",
        f"to    {plan.target}",
        f"{element} on {machine}: {WORDS[plan.way]}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if found.steps:
        sys.stdout.write("\n")
        rows = [(name, count, meaning(name)) for name, count in found.steps]
        print_table(("step", "count", "of each thread"), rows)
    facts = [("cost", f"{found.cost:g} half cycles a warp"), ("at least", f"{found.least:g}")]
    if any(found.passes):
        stored, loaded = found.passes
        facts.append(("bank passes", f"{stored} to store, {loaded} to load, of a warp"))
    if found.barriers:
        facts.append(("barriers", str(found.barriers)))
    if found.scratch:
        facts.append(("scratch", f"{found.scratch} bytes"))
    sys.stdout.write("\n" + "".join(f"{name + ':':13}{value}\n" for name, value in facts))
    sys.stdout.write("\n" + "".join(f"{reason}\n" for reason in found.reasons))
