"""Programs of linalg as CUDA graphs: the time of a launch of all of them, beside PyTorch's layers.

They are those of examples/linalg, small as they are there (but for the rows of `linears`): what is
measured is launches and what the kernels fuse. PyTorch runs the same layers one by one and as a
CUDA graph. Results are held against the example's meaning in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu import peers
from benchmarks.gpu.contest import Contender, contest, on_gpu
from benchmarks.gpu.device import DeviceArray
from benchmarks.gpu.kernels import Array, Judge, far, script
from benchmarks.gpu.kit import TARGET, Kit, Work

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder


def linears(torch: Any, x: Any, *weights: Any) -> Any:
    """Three layers, the last one's result in f32."""
    layer = torch.nn.functional.linear
    x = layer(layer(x, *weights[:2]).relu(), *weights[2:4]).relu()
    return layer(x, *weights[4:]).float()


def residual_block(torch: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    product = partial(torch.nn.functional.conv2d, padding=1)
    hidden = product(x, w1, b1.half()).relu()
    return (product(hidden, w2, b2.half()) + x).relu()


def transformer_block(
    torch: Any, x: Any, g1: Any, g2: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any
) -> Any:
    """Two heads."""
    functions = torch.nn.functional
    n = functions.rms_norm(x, x.shape[1:], g1, 1e-5).half()
    q, k, v = ((n @ w).view(len(x), 2, -1).transpose(0, 1)[None] for w in (wq, wk, wv))
    mixed = functions.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    x = x + mixed.transpose(0, 1).reshape(x.shape) @ wo
    n = functions.rms_norm(x, x.shape[1:], g2, 1e-5).half()
    return x + functions.silu(n @ w1) @ w2


PROGRAMS: dict[str, tuple[Callable[..., Any], str]] = {
    "transformer_block": (transformer_block, "block"),
    "residual_block": (residual_block, "block"),
    "linears": (linears, "layers"),
}
"""In PyTorch, and what the example calls its meaning."""

PACKAGES = ("torch",)


def units(kit: Kit) -> list[str]:
    return list(PROGRAMS)


def prepare(kit: Builder) -> None:
    for name in PROGRAMS:
        kit.carry_kernel(program(name))


def program(name: str) -> Any:
    import fragir

    return fragir.compile(script(f"linalg/{name}.py")["TEXT"], target=TARGET)


def run(work: Work) -> dict[str, Any]:
    """Milliseconds of a launch of everything."""
    names, (layers, meaning) = script(f"linalg/{work.unit}.py"), PROGRAMS[work.unit]
    rows = (work.kit.size(8192, 50),) if work.unit == "linears" else ()
    given = names["arguments"](*rows)
    wanted = np.asarray(names[meaning](*given))
    compiled = program(work.unit)

    def check(name: str, found: Array) -> str:
        # hidden values are f16, where a sum may be rounded to a neighbour; PyTorch has more of them
        size = 4 if name == "fragir" else 16
        bound = size * 2**-11 * (1 + np.abs(wanted.astype(np.float64)))
        return far(found.astype(np.float64), wanted.astype(np.float64), bound)

    with on_gpu([*given, np.empty_like(wanted)]) as arrays:
        judge = Judge(arrays[-1], check)
        makers = {
            "fragir": lambda: graph_of(compiled, arrays),
            "PyTorch": lambda: peer(layers, arrays, False),
            "PyTorch, graph": lambda: peer(layers, arrays, True),
        }
        return contest(work, judge.of(makers), judge, rounds=work.kit.size(50, 2))


def graph_of(compiled: Any, arrays: Sequence[DeviceArray]) -> Contender:
    """A program's graph. The call before loads the module, which a capture may forbid."""
    compiled(*arrays)
    graph = compiled.graph(*arrays)
    found = Graph(partial(graph.launch, 0), {"launches": len(compiled.plan.launches)})
    found.close = graph.close
    return found


class Graph(Contender):
    """What frees a graph beside its arrays."""

    close: Callable[[], None]

    def free(self) -> None:
        self.close()


def peer(layers: Callable[..., Any], arrays: Sequence[DeviceArray], graph: bool) -> Contender:
    """PyTorch's layers, one by one or as a graph; the last array is their result."""
    torch = peers.imported("torch")
    *given, out = (torch.as_tensor(array, device="cuda") for array in arrays)
    if not graph:
        return peers.contender(torch, lambda: layers(torch, *given), out)
    with torch.cuda.stream(torch.cuda.Stream()):  # libraries set themselves up before a capture
        layers(torch, *given)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        result = layers(torch, *given)

    def replay() -> Any:
        recorded.replay()
        return result

    return peers.contender(torch, replay, out)
