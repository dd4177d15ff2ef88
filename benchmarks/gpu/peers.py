"""PyTorch's operations as contenders, on arrays of the GPU without a copy.

`device` is where the arrays lie: `"cpu"` for numpy's, as tests have them. PyTorch's current stream
is stream 0, as ours is. Where an operation cannot write into a given array it allocates, from a
pool, and only the first run is copied there, to be checked. FragirError without PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.gpu.contest import Contender
from fragir.errors import FragirError

_TYPES = {
    **{"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16"},
    **{"f8E4M3FN": "float8_e4m3fn", "i32": "int32"},
}


def imported(package: str) -> Any:
    """A package, or FragirError where it is not there."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise FragirError(f"{package} is not installed") from error


def _tensors(device: str, kind: str, *arrays: Any) -> tuple[Any, list[Any]]:
    """PyTorch, and arrays as its tensors with elements of one kind."""
    torch = imported("torch")
    type = getattr(torch, _TYPES[kind])
    return torch, [torch.as_tensor(array, device=device).view(type) for array in arrays]


def contender(torch: Any, compute: Callable[[], Any], out: Any = None, **facts: Any) -> Contender:
    """What starts an operation; into `out` goes the first result of one that returns it."""
    waiting = [] if out is None else [out]

    def start() -> None:
        found = compute()
        if waiting:
            waiting.pop().copy_(found)

    return Contender(start, {"torch": torch.__version__, "cuda": torch.version.cuda, **facts})


def matmul(
    a: Any, b: Any, c: Any, element: str, result: str, *,
    turned: bool, fast: bool = True, device: str = "cuda",
) -> Contender:  # fmt: skip
    """C = A B by cuBLAS, of M x K and K x N, or N x K where B is `turned`; fp8 is turned.

    `fast`: fp8 sums stay in the tensor cores, as ours and Triton's do; PyTorch's default is not.
    """
    torch, (x, y) = _tensors(device, element, a, b)
    _, (z,) = _tensors(device, result, c)
    right = y.t() if turned else y
    if element == "f8E4M3FN":
        one = torch.ones((), device=device)
        type = z.dtype
        return contender(
            torch,
            lambda: torch._scaled_mm(
                x, right, one, one, out_dtype=type, use_fast_accum=fast, out=z
            ),
            fast_accumulation=fast,
        )
    settings = torch.backends.cuda.matmul
    settings.allow_tf32 = element == "tf32"
    settings.allow_bf16_reduced_precision_reduction = False
    settings.allow_fp16_reduced_precision_reduction = False
    return contender(torch, lambda: torch.mm(x, right, out=z))


ATTENTION = {
    "cuDNN": "CUDNN_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
}
"""PyTorch's own ways to attention, by names of `torch.nn.attention.SDPBackend`."""


def attention(
    q: Any, k: Any, v: Any, o: Any, kind: str, way: str, *,
    causal: bool, device: str = "cuda",
) -> Contender:  # fmt: skip
    """O = softmax(Q K^T / sqrt(d)) V of (heads, rows, d), by a way of ATTENTION; no sums of rows.

    K and V may have fewer heads. `causal` for as many queries as keys: PyTorch's begins elsewhere.
    """
    torch, (*given, out) = _tensors(device, kind, q, k, v, o)
    ways = imported("torch.nn.attention")
    backend = getattr(ways.SDPBackend, ATTENTION[way])
    queries, keys, values = (one[None] for one in given)
    if causal and queries.shape[2] != keys.shape[2]:
        raise FragirError("PyTorch's causal attention is of as many queries as keys")
    options = {"is_causal": causal}
    if queries.shape[1] != keys.shape[1]:
        options["enable_gqa"] = True
    product = torch.nn.functional.scaled_dot_product_attention

    def compute() -> Any:
        with ways.sdpa_kernel(backend):
            return product(queries, keys, values, **options)[0]

    return contender(torch, compute, out, backend=backend.name)


def softmax(x: Any, y: Any, kind: str, device: str = "cuda") -> Contender:
    """Softmax of each row."""
    torch, (x, y) = _tensors(device, kind, x, y)
    return contender(torch, lambda: torch.softmax(x, 1, out=y))


def layer_norm(
    x: Any, gamma: Any, beta: Any, y: Any, eps: float, kind: str, device: str = "cuda"
) -> Contender:
    """Layer norm of each row; gamma and beta in f32 are rounded to x's elements beforehand."""
    torch, (x, y) = _tensors(device, kind, x, y)
    _, weights = _tensors(device, "f32", gamma, beta)
    weights = [one.to(x.dtype) for one in weights]
    normed = torch.nn.functional.layer_norm
    return contender(torch, lambda: normed(x, x.shape[1:], *weights, eps), y)


def rms_norm(x: Any, gamma: Any, y: Any, eps: float, kind: str, device: str = "cuda") -> Contender:
    """RMS norm of each row; gamma in f32 is rounded to x's elements beforehand."""
    torch, (x, y) = _tensors(device, kind, x, y)
    _, (weight,) = _tensors(device, "f32", gamma)
    weight = weight.to(x.dtype)
    normed = torch.nn.functional.rms_norm
    return contender(torch, lambda: normed(x, x.shape[1:], weight, eps), y)


def cross_entropy(
    x: Any, targets: Any, losses: Any, ignored: int, kind: str, device: str = "cuda"
) -> Contender:
    """The loss of each row, f32 rounded to x's elements; `targets` in i32 become i64 beforehand."""
    torch, (x,) = _tensors(device, kind, x)
    _, (chosen,) = _tensors(device, "i32", targets)
    _, (out,) = _tensors(device, "f32", losses)
    chosen = chosen.long()
    entropy = torch.nn.functional.cross_entropy
    return contender(torch, lambda: entropy(x, chosen, reduction="none", ignore_index=ignored), out)


def copy(x: Any, y: Any, kind: str, device: str = "cuda", *, turned: bool = False) -> Contender:
    """y = x, for the rate of copies, or x transposed."""
    torch, (x, y) = _tensors(device, kind, x, y)
    source = x.t() if turned else x
    return contender(torch, lambda: y.copy_(source))


def transpose(x: Any, y: Any, kind: str, device: str = "cuda") -> Contender:
    """y = x transposed."""
    return copy(x, y, kind, device, turned=True)
