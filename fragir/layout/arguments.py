"""What functions of layouts are given: checks, and how large a table may become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import zip_longest
from math import prod
from typing import Any, ParamSpec, TypeVar, cast

from fragir.errors import kind_of, require_whole_number
from fragir.layout.layout import Layout
from fragir.layout.modes import LARGEST_TABLE, LayoutError, Point

P = ParamSpec("P")
R = TypeVar("R")


def takes(*kinds: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose first arguments are of these types; LayoutError where they are not.

    Where it takes a Layout, whatever can be one (it has `as_layout`) is made one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for value, kind in zip(args, kinds, strict=False):
                if not isinstance(value, kind):
                    if kind is Layout and hasattr(value, "as_layout"):
                        return cast("Any", checked)(
                            *_as_layouts(args, kinds[: len(args)]), **kwargs
                        )
                    article = "an" if kind.__name__[0] in "aeiou" else "a"
                    raise LayoutError(
                        f"{function.__name__.lstrip('_')} takes {article} {kind.__name__}, "
                        f"not {kind_of(value)}."
                    )
            return function(*args, **kwargs)

        return checked

    return decorate


def _as_layouts(args: Iterable[Any], kinds: tuple[type, ...]) -> Iterator[Any]:
    """The arguments; those that are to be layouts, and can be, as layouts."""
    for value, kind in zip_longest(args, kinds):
        made = kind is Layout and hasattr(value, "as_layout")
        yield value.as_layout() if made else value


def require_point(value: object, rank: int, what: str, least: int = 0) -> Point:
    """So many whole numbers, `least` or more; LayoutError otherwise."""
    try:
        numbers = tuple(cast("Iterable[Any]", value))
    except TypeError:
        numbers = ()
    if len(numbers) != rank or isinstance(value, str | bytes):
        raise LayoutError(f"{what} {value!r} does not have {rank} dimensions.")
    return tuple(require_whole_number(number, what, least) for number in numbers)


def require_shape(value: object, what: str) -> Point:
    """A tile's extents, one or more in each dimension; LayoutError otherwise."""
    try:
        numbers = tuple(cast("Iterable[Any]", value))
    except TypeError:
        numbers = ()
    if not numbers or isinstance(value, str | bytes):
        raise LayoutError(f"{what} is {kind_of(value)}, it must be a tuple of numbers.")
    return require_point(numbers, len(numbers), what, 1)


def require_names(value: object, what: str) -> tuple[str, ...]:
    """Names, one or more; LayoutError otherwise."""
    given = tuple(cast("Iterable[object]", value)) if isinstance(value, tuple | list) else ()
    texts = tuple(name for name in given if isinstance(name, str))
    if not texts or len(texts) != len(given):
        raise LayoutError(f"{what} are {value!r}, they must be a tuple of names.")
    return texts


def check_table(layout: Layout) -> None:
    """LayoutError where a layout has more slots than are looked at one by one."""
    slots = prod(layout.sizes.values())
    if slots > LARGEST_TABLE:
        raise LayoutError(
            f"The layout has {slots} slots; at most {LARGEST_TABLE} are looked at one by one."
        )


def require_text(value: object, what: str) -> str:
    """A text; LayoutError otherwise."""
    if not isinstance(value, str):
        raise LayoutError(f"{what} is a text, not {kind_of(value)}.")
    return value
