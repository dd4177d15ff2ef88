"""Problems of KernelBench and SOL-ExecBench: read, launched by a submission, and judged."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.judge import BrokenCaseError, Judgement, Judging, judge
from fragir.judge.torch_functions import FUNCTIONS, TorchArray

ROOT = Path(__file__).resolve().parents[2]
NORM = (ROOT / "examples/judged/norm.ptx").read_text("utf-8")

#: As much of torch as a problem asks for: tensors of numpy, functions that ask their arguments.
TORCH = """
import contextlib, types
import numpy as np
class Tensor:
    def __init__(self, array, dtype="torch.float32"):
        self.array, self.dtype = array, dtype
    def is_floating_point(self): return self.array.dtype.kind == "f"
    def detach(self): return self
    cpu = double = long = detach
    def numpy(self): return self.array
class Module:
    def double(self): return self
    eval = double
    def __call__(self, *args): return self.forward(*args)
    def __init__(self): self._parameters = {}
    def named_parameters(self): return self._parameters.items()
    def __getattr__(self, name):
        if name in self.__dict__["_parameters"]: return self._parameters[name]
        raise AttributeError(name)
nn = types.SimpleNamespace(Module=Module)
device = str
float32 = "float32"
_rng = np.random.default_rng(0)
def manual_seed(n):
    global _rng
    _rng = np.random.default_rng(n)
def randn(*shape): return Tensor(_rng.normal(size=shape).astype("f4"))
no_grad = contextlib.nullcontext
def as_tensor(x): return Tensor(x, f"torch.{x.dtype}")
def _asks(name):
    def function(x, *args, **options):
        if isinstance(x, Tensor): raise NotImplementedError(name)
        return type(x).__torch_function__(function, (), (x, *args), options)
    function.__name__ = name
    return function
sqrt, mean, sort, rsqrt = map(_asks, ("sqrt", "mean", "sort", "rsqrt"))
"""
KERNELBENCH = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
    def forward(self, x):
        return x / torch.sqrt(torch.mean(x ** 2, dim=-1, keepdim=True) + self.eps)
rows, columns = 4096, 65536
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return [1e-5]
"""
RUN = """import torch
def run(input, eps):
    x = input.to(torch.float32)
    return (x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True) + eps)).to(input.dtype)
"""
DEFINITION = {
    "name": "norm",
    "axes": {
        "rows": {"type": "var"},
        "half": {"type": "const", "value": 2048},
        "columns": {"type": "expr", "expression": "2 * half"},
    },
    "inputs": {
        "input": {"shape": ["rows", "columns"], "dtype": "float32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"output": {"shape": ["rows", "columns"], "dtype": "float32"}},
    "reference": RUN,
}
CASES = """
import numpy as np
from fragir.judge import KernelCall
from fragir.judge.problems import kernelbench, sol_execbench
EPS = float(np.float32(1e-5))
def launch(inputs, outputs):
    (x, *_), (y,) = inputs.values(), outputs.values()
    return KernelCall("norm", [x, y, x.shape[1], EPS], grid=x.shape[0], block=32)
def bench(rng):
    yield from kernelbench("problem.py", launch, rng, sizes={"rows": 3, "columns": 40})
def sol(rng):
    yield from sol_execbench("sol", launch, rng, sizes={"half": 20})
def large(rng):
    yield from sol_execbench("sol", launch, rng, most=64)
def other(rng):
    yield from kernelbench("problem.py", launch, rng, sizes={"lines": 3})
"""

Judged = Callable[[str], Judgement]


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with problems and a submission, and little torch."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    (tmp_path / "torch" / "nn.py").write_text("from torch import Module\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    eps = float(np.float32(1e-5))
    (tmp_path / "problem.py").write_text(KERNELBENCH.replace("1e-5", repr(eps)))
    (tmp_path / "submission.py").write_text(CASES)
    (tmp_path / "sol").mkdir()
    (tmp_path / "sol" / "definition.json").write_text(json.dumps(DEFINITION))
    inputs = {"input": {"type": "random"}, "eps": {"type": "scalar", "value": eps}}
    lines = [{"uuid": str(n), "axes": {"rows": n}, "inputs": inputs} for n in (1, 5, 1 << 20)]
    (tmp_path / "sol" / "workload.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


@pytest.mark.usefixtures("problems")
def test_a_problem_of_kernelbench() -> None:
    verdict = judge(NORM, "submission.py:bench", Judging(jobs=1))
    assert verdict.word == "pass", verdict.reasons
    assert verdict.equality == "exact (2^-60)", verdict.unproved
    assert [one.shapes for one in verdict.launches] == [[[3, 40], [3, 40]]]
    wrong = NORM.replace("add.f32 %f4, %f4, %f1;", "fma.rn.f32 %f4, %f1, 0f40000000, %f4;")
    assert judge(wrong, "submission.py:bench", Judging(jobs=1)).word == "fail"


@pytest.mark.usefixtures("problems")
def test_a_problem_of_sol_execbench() -> None:
    verdict = judge(NORM, "submission.py:sol", Judging(jobs=1))
    assert verdict.word == "pass", verdict.reasons
    assert verdict.equality == "exact (2^-60)", verdict.unproved
    assert [one.shapes[0] for one in verdict.launches] == [[1, 40], [5, 40]]


@pytest.mark.usefixtures("problems")
@pytest.mark.parametrize(
    ("name", "message"), [("large", "more than 64 elements"), ("other", "problem.py has no lines")]
)
def test_problems_that_cannot_be_had(name: str, message: str) -> None:
    with pytest.raises(BrokenCaseError, match=message):
        judge(NORM, f"submission.py:{name}", Judging(jobs=1))


def test_without_torch(problems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (problems / "torch" / "__init__.py").write_text("raise ImportError('none')")
    with pytest.raises(BrokenCaseError, match="torch, which is not installed"):
        judge(NORM, "submission.py:sol", Judging(jobs=1))


# -- the table -------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(3, 4, 6))
W = np.random.default_rng(1).normal(size=(5, 6))
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    # by torch, a tensor of X and one of W
    "softmax": lambda t, x, w: t.softmax(x, 1),
    "functional softmax": lambda t, x, w: t.nn.functional.softmax(x, dim=-1),
    "linear": lambda t, x, w: t.nn.functional.linear(x, w, w[:, 0]),
    "layer norm": lambda t, x, w: t.nn.functional.layer_norm(x, (4, 6), x[0], x[1], 1e-3),
    "rms norm": lambda t, x, w: t.nn.functional.rms_norm(x, (6,), w[0], 1e-3),
    "attention": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x, x, 2 * x),
    "causal": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "gelu": lambda t, x, w: t.nn.functional.gelu(x, approximate="tanh"),
    "relu, silu, sigmoid": lambda t, x, w: t.relu(x) + t.nn.functional.silu(x) * t.sigmoid(x),
    "var, std": lambda t, x, w: x.var(dim=1) + x.std(1, unbiased=False) + t.var(x),
    "sums": lambda t, x, w: t.sum(x, dim=(0, 2), keepdim=True) + x.mean(-1, keepdim=True),
    "extremes": lambda t, x, w: x.amax(dim=1) - t.amin(x, 1) + x.max() + t.maximum(x, -x)[:, 0],
    "clamp": lambda t, x, w: x.clamp(-0.5, 0.7) + t.clamp(x, min=0.1),
    "where": lambda t, x, w: x.masked_fill(t.ones(4, 6).tril() == 0, -1.0),
    "shapes": lambda t, x, w: x.transpose(0, 1).reshape(4, -1).unsqueeze(1).flatten(1),
    "permuted": lambda t, x, w: x.permute(2, 0, 1).contiguous().view(6, 12).t(),
    "joined": lambda t, x, w: t.cat([x, x], dim=1)[:, 2:] + t.stack([x[0], x[1]]).sum(),
    "expanded": lambda t, x, w: w[:1].unsqueeze(0).expand(3, 4, -1) * x,
    "products": lambda t, x, w: t.einsum("abc,dc->abd", x, w) + t.matmul(x, w.T) - x @ w.T / 2,
    "batches": lambda t, x, w: t.bmm(x, x.transpose(1, 2)) + 1.0 - t.addmm(w @ w.T, w, w.T)[0, 0],
    "powers": lambda t, x, w: (
        (x**2 + 1).rsqrt() + (2 - t.exp(-x)) / t.sqrt(x * x + 1) + 3 / (x - 9)
    ),
    "triangles": lambda t, x, w: t.tril(x) - x.triu(1),
    "types": lambda t, x, w: x.to(t.float64).type_as(x).double() + t.abs(x) - (-x),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_torch_computes(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the table is held against torch's own results")
    wanted = CALLS[name](torch, torch.tensor(X), torch.tensor(W)).numpy()
    found = CALLS[name](torch, TorchArray(X, torch.float64), TorchArray(W, torch.float64)).array
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_table_by_formulas() -> None:
    """A few of it where there is no torch."""
    e = np.exp(X)
    np.testing.assert_allclose(FUNCTIONS["softmax"](X, 1), e / e.sum(1, keepdims=True))
    np.testing.assert_allclose(FUNCTIONS["var"](X, 1), X.var(1, ddof=1))
    np.testing.assert_allclose(FUNCTIONS["linear"](X, W, W[:, 0]), X @ W.T + W[:, 0])
    np.testing.assert_allclose(FUNCTIONS["flatten"](X, 1), X.reshape(3, 24))
    assert FUNCTIONS["expand"](W[:1], 2, -1, 6).shape == (2, 1, 6)
    normal = FUNCTIONS["layer_norm"](X, (6,), eps=0.0)
    np.testing.assert_allclose(normal.mean(-1), 0, atol=1e-14)
    np.testing.assert_allclose(normal.var(-1), 1)
