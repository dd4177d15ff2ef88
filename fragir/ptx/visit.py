"""Walking and rewriting syntax trees, driven by one table of which fields hold nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from operator import is_
from typing import Any, TypeVar, cast, get_args

from fragir.ptx import tree
from fragir.ptx.tree import Module, Name, Node

N = TypeVar("N", bound=Node)

_TEXT = ("str", "int", "bool", "str | None", "tuple[str, ...]", "Source | None")

# node class -> the fields that hold a node, a tuple of nodes, or None
NODE_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(f.name for f in fields(cls) if f.type not in _TEXT)
    for cls in get_args(Node)
    if isinstance(cls, type)
}
NODE_FIELDS[tree.UnreadBlock] = NODE_FIELDS[tree.Block]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under `node`, in the order of its fields."""
    for name in NODE_FIELDS[type(node)]:
        value: Any = getattr(node, name)
        if type(value) is tuple:
            each: Any
            for each in cast("tuple[Any, ...]", value):
                if each is not None:
                    yield each
        elif value is not None and type(value) is not str:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything under it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        for name in reversed(NODE_FIELDS[type(node)]):
            value: Any = getattr(node, name)
            if type(value) is tuple:
                below = cast("tuple[Any, ...]", value)
                stack += [each for each in reversed(below) if each is not None]
            elif value is not None and type(value) is not str:
                stack.append(value)


def transform(node: N, function: Callable[[Node], Node | None]) -> N:
    """The tree rebuilt from the leaves up with `function` applied to every node.

    `function` gets each node after its children were rebuilt and returns what takes its place;
    None drops it from the tuple that it stands in (or leaves an optional field empty). What does
    not change is shared with the old tree.
    """
    if type(node) not in NODE_FIELDS:
        raise TypeError(f"a node of a tree is transformed, not {type(node).__name__}")
    made = _transform(node, function)
    if made is None:
        raise ValueError("the root of a tree cannot be dropped")
    if not isinstance(made, type(node)):
        raise TypeError(f"a {type(node).__name__} became a {type(made).__name__}")
    return made


def _transform(node: Any, function: Callable[[Node], Node | None]) -> Any:
    changes: dict[str, Any] = {}
    for name in NODE_FIELDS[type(node)]:
        old: Any = getattr(node, name)
        if old is None or type(old) is str:
            continue
        if type(old) is tuple:
            kept: list[Any] = []
            for each in cast(
                "tuple[Any, ...]", old
            ):  # an empty dimension `[]` is a None that stays
                made = None if each is None else _transform(each, function)
                if made is not None or each is None:
                    kept.append(made)
            new: Any = tuple(kept)
            same = len(kept) == len(getattr(node, name)) and all(
                map(is_, kept, cast("tuple[Any, ...]", old))
            )
        else:
            new = _transform(old, function)
            same = new is old
        if not same:
            changes[name] = new
    return function(replace(node, **changes) if changes else node)


def rename(module: Module, names: Callable[[str], str] | Mapping[str, str]) -> Module:
    """The module with every `Name` (register, label, variable, function) renamed.

    `names` maps the old text to the new one; a mapping leaves what it does not mention. Targets,
    types and the text of sections that were not expanded are no names.
    """

    def one(node: Node) -> Node:
        if not isinstance(node, Name):
            return node
        old = node.text
        text = names(old) if callable(names) else names.get(old, old)
        return node if text == old else tree.Name(text, node.at)

    return transform(module, one)
