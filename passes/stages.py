"""The road from a matrix program to what one lane does: a row a step, in order.

A row says which pass the step is and which programs need it. A module's pipeline is what these rows
select, asked in order, each of the module as the passes before it left it. Packages add rows
through the entry point `fragir.stages` (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType

from fragir.dialects.shorthands import operations_in


class Contents:
    """What a module contains, as far as rows ask; looked up at the first question."""

    def __init__(self, module: ModuleOp):
        self.module = module

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of operations, and of discardable attributes."""
        names, attributes = set[str](), set[str]()
        for op in operations_in(self.module):
            names.add(op.name)
            if op.attributes:
                attributes.update(op.attributes)
        return frozenset(names), frozenset(attributes)

    @property
    def operations(self) -> frozenset[str]:
        """The names of its operations, such as `frag.matmul`."""
        return self._names[0]

    @property
    def attributes(self) -> frozenset[str]:
        """The names of its operations' discardable attributes, such as `frag.stages`."""
        return self._names[1]

    @cached_property
    def dialects(self) -> frozenset[str]:
        """The dialects of its operations."""
        return frozenset(name.partition(".")[0] for name in self.operations)

    @cached_property
    def functions(self) -> tuple[func.FuncOp, ...]:
        return tuple(op for op in self.module.ops if isinstance(op, func.FuncOp))

    @cached_property
    def passes_tensors(self) -> bool:
        """Whether a function takes or returns a tensor."""
        return any(
            isinstance(type_, TensorType)
            for function in self.functions
            for type_ in (*function.function_type.inputs, *function.function_type.outputs)
        )

    @cached_property
    def returns_memory(self) -> bool:
        """Whether a function with a body returns memory."""
        return any(
            isinstance(type_, MemRefType)
            for function in self.functions
            if not function.is_declaration
            for type_ in function.function_type.outputs
        )

    @cached_property
    def has_lanes(self) -> bool:
        """Whether a function is at the lane level: a program of lanes needs no pass of ours."""
        foreign = any(op.name == "ptx.function" for op in self.module.ops)
        return foreign or any(is_lanes(function) for function in self.functions)


def is_lanes(function: func.FuncOp) -> bool:
    """Whether a function says what one lane does."""
    return "ptx.ntid" in function.attributes


class Stage:
    """A step of the road.

    `passes` is pass-pipeline text, as `toy-fuse,toy-to-frag{unroll=2}`; a pass with a field
    `target` (such as "sm_80") gets the compilation's, unless the text says one. `needed` tells
    whether a module needs the step. `before` names the stage it comes ahead of, by its `name`, or
    `ptx`: after all others.
    """

    __slots__ = ("before", "needed", "passes")

    # a dataclass would take five times as long to make, in every process
    def __init__(
        self, passes: str, needed: Callable[[Contents], bool], before: str = "ptx"
    ) -> None:
        self.passes, self.needed, self.before = passes, needed, before

    def __repr__(self) -> str:
        return f"Stage({self.passes!r}, {self.needed!r}, {self.before!r})"

    @property
    def name(self) -> str:
        """The name of its first pass, which stands for the stage."""
        return self.passes.partition(",")[0].partition("{")[0].strip()


def _has_tiles(contents: Contents) -> bool:
    return not contents.has_lanes


def _has_tensors(contents: Contents) -> bool:
    tensors = "tensor" in contents.dialects or contents.passes_tensors
    return _has_tiles(contents) and (tensors or contents.returns_memory)


def _has_structured(contents: Contents) -> bool:
    return _has_linalg(contents) or _has_tensors(contents)


def _has_linalg(contents: Contents) -> bool:
    copies = "memref.copy" in contents.operations
    return _has_tiles(contents) and (copies or "linalg" in contents.dialects)


def _has_products(contents: Contents) -> bool:
    return _has_tiles(contents) and "frag.matmul" in contents.operations


def _has(name: str) -> Callable[[Contents], bool]:
    """Whether a program of tiles has an operation with a discardable attribute."""
    return lambda contents: _has_tiles(contents) and name in contents.attributes


def _has_tile_loops(contents: Contents) -> bool:
    return _has_tiles(contents) and "frag.for_tiles" in contents.operations


def _has_calls(contents: Contents) -> bool:
    return not contents.has_lanes and "func.call" in contents.operations


STAGES = (
    Stage("func-inline", _has_calls, "linalg-normalize"),
    Stage("linalg-normalize", _has_structured, "frag-bufferize"),
    Stage("frag-bufferize", _has_tensors, "linalg-dispatch"),
    Stage("linalg-dispatch", _has_linalg, "linalg-tile"),
    Stage("linalg-tile", _has_linalg, "convert-linalg-to-frag"),
    Stage("convert-linalg-to-frag", _has_linalg, "frag-tile"),
    Stage("frag-tile", _has_products, "frag-pipeline"),
    Stage("frag-pipeline", _has("frag.stages"), "frag-specialize"),
    Stage("frag-specialize", _has("frag.specialize"), "frag-raster"),
    Stage("frag-raster", _has_tile_loops, "frag-prefetch"),
    Stage("frag-prefetch", _has("frag.prefetch"), "frag-place"),
    Stage("frag-place", _has_tiles, "convert-frag-to-ptx"),
    Stage("convert-frag-to-ptx", _has_tiles, "ptx"),
)

LEVELS = {"placed": "frag-place", "lane": "convert-frag-to-ptx"}
"""The stage of ours that ends at each level."""

DIALECTS = frozenset(
    (
        *"arith builtin frag func linalg math memref ptx scf tensor vector".split(),
        *("tm_tensor", "iree_linalg_ext"),
    )
)
"""What the passes of these rows know: a program with anything else may need another package's."""
