"""The table of instructions as pages: a page a family and shape, a picture of every operand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from docs.hooks.operand_pictures import Pictures
from docs.hooks.pages import table
from fragir import isa
from fragir.isa.model import Instruction, Operand

FOLDER = "reference/instructions"
_ABOUT = {
    "mma": "a product of one warp, its operands in registers",
    "mma.sp": "the same with a sparse A, of which half is kept",
    "mma.sp::ordered_metadata": "the same, with the metadata in ascending order",
    "wgmma": "a product of four warps; B, and A if wanted, in shared memory",
    "wgmma.sp": "the same with a sparse A",
    "ldmatrix": "small matrices from shared memory to the lanes of a warp",
    "stmatrix": "the way back",
    "movmatrix": "an 8 x 8 matrix transposed between the lanes of a warp",
    "tcgen05.ld": "from tensor memory to registers",
    "tcgen05.st": "from registers to tensor memory",
    "tcgen05.ld.red": "from tensor memory to registers, with the least or largest of each row",
    "tcgen05.mma": "a product of one thread's, D in tensor memory, B in shared memory, A in either",
    "tcgen05.mma.sp": "the same with a sparse A",
    "tcgen05.mma.ws": "a product that keeps B: fewer rows, banks of columns",
    "tcgen05.mma.ws.sp": "the same with a sparse A",
}


def files() -> dict[str, str]:
    """Every page and picture, by its path on the site."""
    pictures = Pictures()
    return {**pages(pictures), **pictures.files()}


def pages(pictures: Pictures) -> dict[str, str]:
    """Every page by its path on the site; what they show is added to the pictures."""
    texts = {
        f"{FOLDER}/{name}.md": _page(found, pictures)
        for name, found in grouped(isa.instructions()).items()
    }
    return {f"{FOLDER}/index.md": _index(), **texts}


def titles() -> dict[str, str]:
    """Path on the site -> title, the index first."""
    pages = grouped(isa.instructions())
    return {
        f"{FOLDER}/index.md": "Every instruction",
        **{f"{FOLDER}/{name}.md": title(found[0]) for name, found in pages.items()},
    }


def page_name(instruction: Instruction) -> str:
    """The page that an instruction is on: of a wgmma for all N, of tcgen05 for all shapes."""
    family = instruction.family.replace("::", "-")
    shape = re.sub(r"^m64n\d+", "m64nN", instruction.form.shape)
    return family if family.startswith("tcgen05") else f"{family}.{shape}"


def grouped(instructions: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """Page -> its instructions, in the order of the table."""
    found: dict[str, list[Instruction]] = {}
    for instruction in instructions:
        found.setdefault(page_name(instruction), []).append(instruction)
    return dict(sorted(found.items(), key=lambda page: _place(page[1][0])))


def _place(instruction: Instruction) -> tuple[int, ...]:
    """Pages by family and size."""
    return isa.FAMILIES.index(instruction.family), *instruction.shape


def title(instruction: Instruction) -> str:
    """The heading of the page that an instruction is on."""
    shape = page_name(instruction).removeprefix(instruction.family.replace("::", "-"))
    return f"{instruction.family} {shape.lstrip('.')}".rstrip()


# The index ------------------------------------------------------------------------------------


def _index() -> str:
    every = list(isa.instructions())
    families = {name: [i for i in every if i.family == name] for name in isa.FAMILIES}
    rows = [
        (f"`{name}`", _ABOUT[name], str(len(found)), _links(found))
        for name, found in families.items()
    ]
    counted = [(f"`{target}`", *_counts(every, target)) for target in isa.TARGETS]
    return f"""\
# Every instruction

{len(every)} tensor-core instructions, as `fragir.isa` has them: registers, targets with the lowest
PTX version, what ptxas makes of them there, and a picture of every operand in registers.
[The explorer](../../explore.html) searches them, shows A, B and D side by side, and who contributes
to an element. [The instruction table](../../instructions.md) says how to ask for all this from
Python and from the command line, and what it is held against.

{table(("family", "what it does", "instructions", "pages"), rows)}
## By target

*Native* is one machine instruction, *split* several of a smaller shape, *emulated* a routine of
other instructions: that is what ptxas writes.

{table(("target", "instructions", "native", "split", "emulated"), counted)}
"""


def _links(found: Sequence[Instruction]) -> str:
    pages = grouped(found)
    names = [
        name.removeprefix(found[0].family.replace("::", "-")).lstrip(".") or "all" for name in pages
    ]
    return ", ".join(f"[{name}]({page}.md)" for name, page in zip(names, pages, strict=True))


def _counts(every: Sequence[Instruction], target: str) -> tuple[str, ...]:
    words = [i.lowering.get(target, "") for i in every if target in i.targets]
    kinds = [words.count(kind) for kind in ("native", "split", "emulated")]
    return tuple(str(number) if number else "" for number in (len(words), *kinds))


# A page ---------------------------------------------------------------------------------------


def _page(found: Sequence[Instruction], pictures: Pictures) -> str:
    first = found[0]
    profiles = list(dict.fromkeys(map(_profile, found)))
    used: dict[str, list[tuple[str, str]]] = {}
    sections = list(_sections(found, profiles, pictures, used))
    return f"""\
# {title(first)}

{_facts(first, len(found))}
{"".join(sections)}
## Pictures

`T5:3` is element 3 of lane 5, counted from the lowest bits of its first register; a `+` says that
other lanes hold it too. A large picture leaves its repeats out and says by which rule they go on.
Open one to point at its cells: each names its register and bits.

{"".join(_figure(pictures, name, places) for name, places in used.items())}
## Targets

The lowest PTX version for each target, and what ptxas makes of the instruction there: one machine
instruction (*native*), several of a smaller shape (*split*), a routine of others (*emulated*).

{_profiles(profiles)}"""


def _facts(first: Instruction, count: int) -> str:
    warps = "four warps" if first.warps == 4 else "one warp"
    parts = [f"{count} {'instructions' if count > 1 else 'instruction'}", f"executed by {warps}"]
    if first.tail:
        names = ", ".join(f"`{name}`" for name in first.tail)
        parts.append(f"behind the matrices: {names}")
    return f"{'; '.join(parts)}. [All instructions](index.md)."


_Profile = tuple[tuple[tuple[str, str, str], ...], str]


def _profile(instruction: Instruction) -> _Profile:
    """(target, PTX version, what becomes of it there) of every target, and why it is refused."""
    each = tuple(
        (target, version, instruction.lowering.get(target, ""))
        for target, version in instruction.targets.items()
    )
    return each, instruction.refused or ""


def _profiles(profiles: Sequence[_Profile]) -> str:
    """What `T1`, `T2` of the rows stand for."""
    lines: list[str] = []
    for number, (each, refused) in enumerate(profiles, 1):
        kinds: dict[str, list[str]] = {}
        for target, version, kind in each:
            kinds.setdefault(kind, []).append(f"{target} from {version}")
        texts = [f"*{kind}*: {', '.join(names)}" for kind, names in kinds.items() if kind]
        if refused:
            texts = [f"must not be emitted: {refused}"]
        lines.append(f"### T{number}\n\n{'; '.join(texts)}.\n")
    return "\n".join(lines)


def _sections(
    found: Sequence[Instruction],
    profiles: Sequence[_Profile],
    pictures: Pictures,
    used: dict[str, list[tuple[str, str]]],
) -> Iterator[str]:
    """A table for each group of types, or one where nearly every row has its own."""
    groups: dict[str, list[Instruction]] = {}
    for instruction in found:
        groups.setdefault(_group(instruction), []).append(instruction)
    if 2 * len(groups) > len(found):
        groups = {"Instructions": list(found)}
    for name, rows in groups.items():
        cells = "".join(_row(i, profiles.index(_profile(i)) + 1, pictures, used) for i in rows)
        head = "<tr><th>mnemonic</th><th>operands</th><th>targets</th></tr>"
        yield f"\n## {name}\n\n<table>\n<thead>{head}</thead>\n<tbody>\n{cells}</tbody>\n</table>\n"


def _group(instruction: Instruction) -> str:
    if instruction.family.startswith("tcgen05"):
        return instruction.form.shape or "Instructions"
    return ".".join(instruction.form.types) or "Instructions"


def _row(
    instruction: Instruction,
    profile: int,
    pictures: Pictures,
    used: dict[str, list[tuple[str, str]]],
) -> str:
    parts: list[str] = []
    for operand in instruction.operands.values():
        name = pictures.of(instruction, operand)
        text = _operand(operand)
        if name is not None:
            places = used.setdefault(name, [])
            if not places or places[-1][0] != operand.name:
                places.append((operand.name, instruction.mnemonic))
            text = f'<a href="#p-{name}">{text}</a>'
        parts.append(text)
    also = "".join(f"<br>also <code>{escape(alias)}</code>" for alias in instruction.aliases)
    mnemonic = escape(instruction.mnemonic)
    return (
        f'<tr id="{mnemonic}"><td><code>{mnemonic}</code>{also}</td>'
        f"<td>{', '.join(parts)}</td>"
        f'<td><a href="#t{profile}">T{profile}</a></td></tr>\n'
    )


def _operand(operand: Operand) -> str:
    registers = operand.registers
    match registers.cls:
        case "descriptor":
            return f"{operand.name}: descriptor"
        case "address":
            return f"{operand.name}: address"
        case _:
            return f"{operand.name}: {registers.count} .{registers.type}"


def _figure(pictures: Pictures, name: str, places: Sequence[tuple[str, str]]) -> str:
    view = pictures.found[name].view
    operands = ", ".join(dict.fromkeys(operand for operand, _ in places))
    shape = " x ".join(map(str, view.shape))
    dims = ", ".join(view.dims)
    first = places[0][1]
    text = f"{operands} of <code>{escape(first)}</code>: {shape} ({dims})<br>"
    return (
        f'<figure id="p-{name}"><figcaption>{text}<code>{escape(str(view.layout))}</code>'
        f'</figcaption><a href="pictures/{name}.svg"><img loading="lazy" '
        f'src="pictures/{name}.svg" alt="{escape(str(view.layout))}"></a></figure>\n\n'
    )
