"""torch's functions by numpy: what stands for tensors where a reference is written in torch.

A `TorchArray` holds an array of float64, or what the judge gives in its place, and torch's
functions and methods are numpy's over it (`FUNCTIONS`). A conversion to another type changes
nothing.
"""

# torch is not there to be asked, and what stands for arrays has no common type
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fragir.judge.case import Array

Numbers: TypeAlias = Any  # arrays of float64, and what stands for them


class NotKnownError(TypeError):
    """A function of torch's that is not in the table."""


def _softmax(x: Numbers, dim: int = -1, *_: Any, **__: Any) -> Numbers:
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def _sigmoid(x: Numbers) -> Numbers:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Numbers, approximate: str = "none") -> Numbers:
    if approximate != "tanh":
        raise NotKnownError("gelu by erf")
    return 0.5 * x * (1.0 + np.tanh(float(np.sqrt(2 / np.pi)) * (x + 0.044715 * x * x * x)))


def _linear(x: Numbers, weight: Numbers, bias: Numbers = None) -> Numbers:
    found = x @ np.swapaxes(weight, -1, -2)
    return found if bias is None else found + bias


def _normalised(x: Numbers, axes: tuple[int, ...], eps: float, centred: bool) -> Numbers:
    apart = x - x.mean(axis=axes, keepdims=True) if centred else x
    return apart / np.sqrt((apart * apart).mean(axis=axes, keepdims=True) + eps)


def _scaled(x: Numbers, weight: Numbers, bias: Numbers) -> Numbers:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _layer_norm(
    x: Numbers, shape: Any, weight: Numbers = None, bias: Numbers = None, eps: float = 1e-5
) -> Numbers:
    axes = tuple(range(x.ndim - len(tuple(shape)), x.ndim))
    return _scaled(_normalised(x, axes, float(eps), True), weight, bias)


def _rms_norm(x: Numbers, shape: Any, weight: Numbers = None, eps: float | None = None) -> Numbers:
    axes = tuple(range(x.ndim - len(tuple(shape)), x.ndim))
    small = float(np.finfo(np.float32).eps) if eps is None else float(eps)
    return _scaled(_normalised(x, axes, small, False), weight, None)


def _attention(
    q: Numbers,
    k: Numbers,
    v: Numbers,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Numbers:
    if attn_mask is not None or dropout_p:
        raise NotKnownError("attention with a mask or dropout")
    factor = 1 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    scores = (q @ np.swapaxes(k, -1, -2)) * factor
    if is_causal:
        kept = np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        scores = np.where(np.broadcast_to(kept, scores.shape), scores, -np.inf)
    return _softmax(scores) @ v


def _reduction(name: str) -> Callable[..., Numbers]:
    def apply(
        x: Numbers, dim: Any = None, keepdim: bool = False, *, axis: Any = None, dtype: Any = None
    ) -> Numbers:
        axes = axis if dim is None else dim
        axes = tuple(axes) if isinstance(axes, list) else axes
        return getattr(x, name)(axis=axes, keepdims=keepdim)

    return apply


def _variance(
    x: Numbers, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **more: Any
) -> Numbers:
    axes = tuple(dim) if isinstance(dim, list) else dim
    correction = more.pop("correction", 1 if unbiased else 0)
    if more:
        raise NotKnownError(f"var with {', '.join(more)}")
    apart = x - x.mean(axis=axes, keepdims=True)
    total = (apart * apart).sum(axis=axes, keepdims=keepdim)
    return total / float(x.size / max(total.size, 1) - correction)


def _extreme(name: str, pair: np.ufunc) -> Callable[..., Numbers]:
    def apply(x: Numbers, other: Numbers = None, **more: Any) -> Numbers:
        if more or isinstance(other, int):
            raise NotKnownError(f"{name} with places")
        return getattr(x, name)() if other is None else pair(x, other)

    return apply


def _clamp(x: Numbers, min: Any = None, max: Any = None) -> Numbers:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


def _reshape(x: Numbers, *shape: Any) -> Numbers:
    wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return x.reshape(tuple(wanted))


def _permute(x: Numbers, *axes: Any) -> Numbers:
    return x.transpose(axes[0] if len(axes) == 1 else axes)


def _transpose(x: Numbers, one: int, other: int) -> Numbers:
    return np.swapaxes(x, one, other)


def _flatten(x: Numbers, start_dim: int = 0, end_dim: int = -1) -> Numbers:
    last = end_dim % x.ndim
    return x.reshape((*x.shape[:start_dim], -1, *x.shape[last + 1 :]))


def _unsqueeze(x: Numbers, dim: int) -> Numbers:
    return np.expand_dims(x, dim)


def _expand(x: Numbers, *shape: Any) -> Numbers:
    wanted = tuple(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    before = (1,) * (len(wanted) - x.ndim) + tuple(x.shape)
    sizes = tuple(b if n == -1 else n for n, b in zip(wanted, before, strict=True))
    return np.broadcast_to(x.reshape(before), sizes)


def _cat(parts: Sequence[Numbers], dim: int = 0) -> Numbers:
    return np.concatenate(parts, axis=dim)


def _stack(parts: Sequence[Numbers], dim: int = 0) -> Numbers:
    return np.stack(parts, axis=dim)


def _unchanged(x: Numbers, *_: Any, **__: Any) -> Numbers:
    return x


def _addmm(c: Numbers, a: Numbers, b: Numbers, *, beta: float = 1, alpha: float = 1) -> Numbers:
    return c * beta + (a @ b) * alpha


def _einsum(pattern: str, *parts: Any) -> Numbers:
    arrays = parts[0] if len(parts) == 1 and isinstance(parts[0], list | tuple) else parts
    return np.einsum(pattern, *arrays)


def _masked_fill(x: Numbers, mask: Any, value: float) -> Numbers:
    return np.where(np.broadcast_to(np.asarray(mask, bool), x.shape), value, x)


def _triangle(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
    return lambda x, diagonal=0: function(x, diagonal)


def _of_two(function: Callable[[Any, Any], Numbers]) -> Callable[..., Numbers]:
    def apply(a: Numbers, b: Numbers, *, alpha: float = 1) -> Numbers:
        return function(a, b if alpha == 1 else b * alpha)

    return apply


#: torch's functions, and methods of tensors, by name.
FUNCTIONS: dict[str, Callable[..., Numbers]] = {
    "add": _of_two(np.add),
    "sub": _of_two(np.subtract),
    "rsub": _of_two(lambda a, b: np.subtract(b, a)),
    "mul": np.multiply,
    "div": np.true_divide,
    "true_divide": np.true_divide,
    "truediv": np.true_divide,
    "rtruediv": lambda a, b: np.true_divide(b, a),
    "pow": lambda a, b: a**b,
    "neg": np.negative,
    **dict.fromkeys(("matmul", "mm", "bmm"), np.matmul),
    "linear": _linear,
    "addmm": _addmm,
    "einsum": _einsum,
    **{f.__name__: f for f in (np.exp, np.exp2, np.log, np.log2, np.sqrt, np.tanh)},
    **{f.__name__: f for f in (np.sin, np.cos, np.square, np.reciprocal, np.maximum, np.minimum)},
    "abs": np.abs,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "relu": lambda x, inplace=False: np.maximum(x, 0.0),
    "sigmoid": _sigmoid,
    "silu": lambda x, inplace=False: x * _sigmoid(x),
    "gelu": _gelu,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "scaled_dot_product_attention": _attention,
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "var": _variance,
    "std": lambda x, *args, **more: np.sqrt(_variance(x, *args, **more)),
    "max": _extreme("max", np.maximum),
    "min": _extreme("min", np.minimum),
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "where": lambda mask, a, b: np.where(np.asarray(mask, bool), a, b),
    "masked_fill": _masked_fill,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    **dict.fromkeys(("reshape", "view"), _reshape),
    "permute": _permute,
    "transpose": _transpose,
    "t": lambda x: x.T,
    "flatten": _flatten,
    "unsqueeze": _unsqueeze,
    "squeeze": lambda x, dim=None: x.squeeze(dim),
    "expand": _expand,
    "cat": _cat,
    "stack": _stack,
    "getitem": lambda x, key: x[key],
    **dict.fromkeys(("to", "float", "double", "half", "bfloat16", "type_as", "type"), _unchanged),
    **dict.fromkeys(("contiguous", "clone", "detach", "cpu", "cuda"), _unchanged),
}


class TorchArray:
    """What torch takes for a tensor: an array, or what stands for one; `dtype` is torch's."""

    def __init__(self, array: Numbers, dtype: object = None) -> None:
        self.array, self.dtype = array, dtype
        self.device, self.requires_grad, self.is_cuda = "cpu", False, False

    @classmethod
    def __torch_function__(
        cls, function: Any, types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = str(getattr(function, "__name__", function)).strip("_")
        return _call(name, args, kwargs or {})

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def T(self) -> TorchArray:
        return TorchArray(self.array.T, self.dtype)

    mT = property(lambda self: TorchArray(np.swapaxes(self.array, -1, -2), self.dtype))

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: _call(name, (self, *args), kwargs)


def _operator(name: str, turned: bool = False) -> Callable[..., Any]:
    def apply(self: TorchArray, *others: Any) -> Any:
        return _call(name, (*others, self) if turned else (self, *others), {})

    return apply


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow"):
    setattr(TorchArray, f"__{_name}__", _operator(_name))
    setattr(TorchArray, f"__r{_name}__", _operator(_name, turned=True))
for _name in ("neg", "abs", "getitem"):
    setattr(TorchArray, f"__{_name}__", _operator(_name))


def _call(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotKnownError(f"torch's {name} is not known here")
    found = function(*map(bare, args), **{key: bare(value) for key, value in options.items()})
    kind = next((one.dtype for one in args if isinstance(one, TorchArray)), None)
    return TorchArray(found, kind)


def bare(value: Any) -> Any:
    """The array of a tensor, of either kind; lists of them too."""
    if isinstance(value, TorchArray):
        return value.array
    if isinstance(value, list | tuple):
        return type(value)(map(bare, value))
    return tensor_numbers(value) if hasattr(value, "detach") else value


def tensor_numbers(tensor: Any) -> Array:
    """A tensor of torch's as float64, or int64."""
    plain = tensor.detach().cpu()
    return plain.double().numpy() if plain.is_floating_point() else plain.long().numpy()
