"""Text of functions with one `linalg.generic`, and bodies of it."""

from __future__ import annotations

from collections.abc import Sequence

Shape = Sequence[int | str]


def generic(
    operands: Sequence[tuple[str, Shape, str]],
    maps: Sequence[str],
    iterators: str,
    body: str,
    outputs: int = 1,
    start: str | None = None,
) -> str:
    """A function of memory: operands as (name, shape, element type), the last ones outputs.

    `maps` gives the places of each operand in loops d0, d1, ...; `iterators` a letter a loop, "p"
    or "r"; `start` a number that fills the outputs before.
    """
    loops = ", ".join(f"d{at}" for at in range(len(iterators)))
    shown = ", ".join(f"affine_map<({loops}) -> ({places})>" for places in maps)
    kinds = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in iterators)
    types = [f"memref<{''.join(f'{size}x' for size in shape)}{el}>" for _, shape, el in operands]
    names = [f"%{name}" for name, _, _ in operands]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    first = len(operands) - outputs
    ins = f"ins({', '.join(names[:first])} : {', '.join(types[:first])}) " if first else ""
    outs = f"outs({', '.join(names[first:])} : {', '.join(types[first:])})"
    fills = ""
    if start is not None:
        for (name, _, element), type_ in zip(operands[first:], types[first:], strict=True):
            fills += f"  %{name}0 = arith.constant {start} : {element}\n"
            fills += f"  linalg.fill ins(%{name}0 : {element}) outs(%{name} : {type_})\n"
    return (
        f"func.func @f({arguments}) {{\n{fills}"
        f"  linalg.generic {{indexing_maps = [{shown}], iterator_types = [{kinds}]}}\n"
        f"      {ins}{outs} {{\n{body}  }}\n  func.return\n}}\n"
    )


def multiply_add(a: str, b: str, c: str) -> str:
    """A body: the output and a product, of elements that are extended."""
    is_float = c[0] in "fb"
    letter, extension = ("f", "extf") if is_float else ("i", "extsi")
    lines = [f"  ^bb0(%u: {a}, %v: {b}, %old: {c}):"]
    values = {"u": "%u", "v": "%v"}
    for name, type_ in (("u", a), ("v", b)):
        if type_ != c:
            lines.append(f"    %{name}1 = arith.{extension} %{name} : {type_} to {c}")
            values[name] = f"%{name}1"
    lines += [
        f"    %p = arith.mul{letter} {values['u']}, {values['v']} : {c}",
        f"    %s = arith.add{letter} %old, %p : {c}",
        f"    linalg.yield %s : {c}",
    ]
    return "\n".join(lines) + "\n"


def contraction(
    spec: str,
    sizes: dict[str, int],
    types: tuple[str, str, str],
    dynamic: str = "",
    old: bool = False,
) -> str:
    """The function of a product as `numpy.einsum` writes it, "mk,kn->mn": a, b into o.

    `dynamic`: letters whose sizes only a launch knows; `old`: it adds to what o holds.
    """
    (a, b), o = spec.split("->")[0].split(","), spec.split("->")[1]
    letters = list(dict.fromkeys(o + a + b))
    maps = [", ".join(f"d{letters.index(c)}" for c in part) for part in (a, b, o)]
    operands = [
        (name, ["?" if c in dynamic else sizes[c] for c in part], type_)
        for name, part, type_ in zip("abo", (a, b, o), types, strict=True)
    ]
    iterators = "".join("p" if c in o else "r" for c in letters)
    zero = "0.0" if types[2][0] in "fb" else "0"
    return generic(operands, maps, iterators, multiply_add(*types), 1, None if old else zero)
