"""What to say about a mnemonic that the table does not have: which part is wrong, what is near."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from fragir.isa import spelling
from fragir.isa.model import BITS, FAMILIES, Form, Instruction, Rules, UnknownInstruction

_OPERANDS = ("D", "A", "B", "C", "the scales")
# How far apart forms are: a wrong type or qualifier is nearer than a wrong shape or family.
_COST = {"type": 2.0, "shape": 2.5, "layout": 1.5, "qualifier": 1.0, "family": 4.0}
_SHOWN = 3
_SHAPES = 6


def unknown_instruction(
    rules: Rules, mnemonic: str, target: str | None = None
) -> UnknownInstruction:
    """The error for a mnemonic that `rules` do not have; what is near, on `target` if given."""
    repaired, reason = _repair(rules, mnemonic)
    form = spelling.parse(repaired)
    legal = rules.resolve(form) if form is not None else None
    if legal is not None:
        return _error(mnemonic, reason or "it is misspelt", (legal.mnemonic,))
    if form is None:
        names = ", ".join(FAMILIES)
        close = get_close_matches(mnemonic, map(spelling.mnemonic, rules.forms()), _SHOWN, 0.5)
        return _error(mnemonic, f"it begins like none of {names}", tuple(close))
    ranked = _ranked_forms(rules, form, target)
    nearest = tuple(spelling.mnemonic(near) for near in ranked)
    return _error(mnemonic, reason or _difference(rules, form, ranked[0]), nearest)


def missing(rules: Rules, found: Instruction, target: str) -> UnknownInstruction:
    """The error for an instruction that exists, but not on this target."""
    ranked = _ranked_forms(rules, found.form, target)
    error = _error(
        found.mnemonic,
        f"the target is wrong: {target} does not have it, but {', '.join(found.targets)}",
        tuple(spelling.mnemonic(near) for near in ranked),
    )
    error.message = f"there is no {found.mnemonic} on {target}: " + error.message.partition(": ")[2]
    return error


def _error(mnemonic: str, reason: str, nearest: tuple[str, ...]) -> UnknownInstruction:
    hint = f"nearest: {', '.join(nearest)}" if nearest else None
    error = UnknownInstruction(f"there is no instruction {mnemonic!r}: {reason}", hint=hint)
    error.nearest = nearest
    return error


def _vocabulary(rules: Rules) -> frozenset[str]:
    """Every word that a canonical mnemonic may have."""
    words = {part for form in rules.forms() for part in spelling.tokens(spelling.mnemonic(form))}
    return frozenset(words | set(BITS) | {"shared", "shared::cta", "rn"})


def _repair(rules: Rules, mnemonic: str) -> tuple[str, str]:
    """The mnemonic with misspelt words replaced by the closest ones, and what was wrong."""
    known = _vocabulary(rules)
    reason = ""
    parts = spelling.tokens(mnemonic)
    for place, part in enumerate(parts):
        if part in known or part.startswith("collector::"):  # hints, which forms do without
            continue
        if spelling.is_shape(part):
            continue  # compared by its numbers, not by its letters
        close = get_close_matches(part, known, 1, 0.6)
        reason = reason or f"{part!r} is no word that any of them has"
        if close:
            parts[place] = close[0]
            reason += f", did you mean {close[0]!r}?" if reason.count("did you mean") == 0 else ""
    return ".".join(parts), reason or spelling.complaint(mnemonic) or ""


def distance(one: Form, other: Form) -> float:
    """How far apart two forms are."""
    types = abs(len(one.types) - len(other.types)) + sum(
        a != b for a, b in zip(one.types, other.types, strict=False)
    )
    layouts = one.layouts != other.layouts
    return (
        _COST["family"] * (one.family != other.family)
        + _shapes_apart(one.shape, other.shape)
        + _COST["type"] * types
        + _COST["layout"] * layouts
        + _COST["qualifier"] * len(one.flags ^ other.flags)
    )


def _shapes_apart(one: str, other: str) -> float:
    """0 for the same shape; among different ones, near sizes are nearer."""
    if one == other:
        return 0.0
    first, second = spelling.sizes(one), spelling.sizes(other)
    if len(first) != len(second):
        return _COST["shape"] + 1
    apart = sum(abs(a - b) / max(a, b, 1) for a, b in zip(first, second, strict=True))
    return _COST["shape"] + apart / 3


def _ranked_forms(rules: Rules, form: Form, target: str | None) -> list[Form]:
    """The nearest legal forms, the nearest first; on `target`, if given and it has any."""
    forms: Iterable[Form] = rules.forms()
    if not form.shape and not form.types:  # nothing but the family is known
        forms = [other for other in forms if other.family == form.family]
    scored = sorted(
        ((distance(form, other), place, other) for place, other in enumerate(forms)),
        key=lambda item: item[:2],
    )
    chosen: list[Form] = []
    for _, _, other in scored:
        found = rules.resolve(other)
        if found is None or found.refused or (target and target not in found.targets):
            continue
        chosen.append(other)
        if len(chosen) == _SHOWN:
            break
    return chosen


def _difference(rules: Rules, form: Form, near: Form) -> str:
    """In words, what is wrong with `form`, as seen from the nearest legal one."""
    if form.family != near.family:
        return f"the family is wrong: {form.family} has nothing like it, {near.family} has"
    if form.shape != near.shape:
        shapes = sorted(
            dict.fromkeys(f.shape for f in rules.forms() if _are_alike(f, form)) or [near.shape],
            key=lambda shape: _shapes_apart(form.shape, shape),
        )
        listed = ", ".join(shapes[:_SHAPES]) + (", ..." if len(shapes) > _SHAPES else "")
        what = ".".join(form.types)
        if not form.shape:
            return f"the shape is missing: {what} has {listed}"
        return f"the shape is wrong: {form.shape} does not exist with {what}, but {listed}"
    if form.types != near.types:
        return _types(form, near)
    if form.layouts != near.layouts:
        written = ".".join(form.layouts) or "nothing"
        legal = ".".join(near.layouts) or "none"
        return f"the layout is wrong: {written} instead of {legal}"
    extra, missing = sorted(form.flags - near.flags), sorted(near.flags - form.flags)
    parts = [f"without .{word}" for word in extra] + [f"with .{word}" for word in missing]
    return f"a qualifier is wrong: it exists {' and '.join(parts)}"


def _are_alike(one: Form, other: Form) -> bool:
    return (one.family, one.types, one.flags) == (other.family, other.types, other.flags)


def _types(form: Form, near: Form) -> str:
    if len(form.types) != len(near.types):
        return (
            f"the types are wrong: {len(form.types)} given, {near.shape} wants "
            f"{len(near.types)}, as {'.'.join(near.types)}"
        )
    wrong = [
        f"{name} must be {legal}, not {mine}"
        for name, mine, legal in zip(_OPERANDS, form.types, near.types, strict=False)
        if mine != legal
    ]
    return f"the type is wrong: in {form.shape} {' and '.join(wrong)}"
