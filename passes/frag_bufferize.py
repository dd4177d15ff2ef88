"""`frag-bufferize`: linalg on tensors becomes linalg on memrefs, by destination passing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrankedTensorType
from xdsl.ir import Attribute
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class FragBufferizePass(ModulePass):
    """Tensors become memory; results become arguments.

    A tensor argument becomes a memref argument. A returned tensor is the argument that it was
    built in place of (the `outs` that its chain of linalg operations starts from), or, where that
    is a tensor.empty, a new last argument. Other tensors are allocated, for
    `convert-linalg-to-frag` to fuse away. An argument is overwritten only where it is returned;
    what would need a copy is refused. Memory that is returned stays the argument that it is; an
    allocation becomes a new last argument.
    """

    name = "frag-bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.bufferizing.buffers import Bufferization
        from fragir.passes.bufferizing.results import keep_memory, returns_memory

        for function in op.ops:
            if not isinstance(function, func.FuncOp):
                continue
            if returns_memory(function) and not function.is_declaration:
                keep_memory(function)
            if _has_tensors(function):
                Bufferization(function).run()


def _has_tensors(function: func.FuncOp) -> bool:
    types: list[Attribute] = [*function.function_type.inputs, *function.function_type.outputs]
    types += [result.type for inner in function.walk() for result in inner.results]
    return any(isinstance(type_, TensorType | UnrankedTensorType) for type_ in types)
