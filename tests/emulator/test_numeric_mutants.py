"""What a tolerance of 1e-2 does not see of wrong kernels, elements of two fields do.

Some mutants of each kind; `fragir sweep numeric-mutants` runs more of more kernels.
"""

from __future__ import annotations

import pytest

from .numeric_mutation import SUBJECTS, numeric_mutants, subject_named, verdict

#: Kernels of which some mutants are run here.
HERE = ("triton softmax", "triton layer norm", "fp8", "sparse", "gelu")
_SOME = 6


@pytest.mark.parametrize("name", HERE)
def test_nothing_that_a_tolerance_sees_is_missed(name: str):
    subject = subject_named(name)
    assert verdict(subject, subject.text) == "equal"
    every = numeric_mutants(subject.text)
    some = [every[i * len(every) // _SOME] for i in range(_SOME)]
    seen = {verdict(subject, mutant.text) for mutant in some}
    assert "tolerance only" not in seen
    assert seen & {"both", "algebra only"}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("triton softmax", "0f3FB8AA3B", "0f3FB8AA4B"),  # log2 e
        (
            "triton layer norm",
            "shfl.sync.bfly.b32 \t%r20, %r19, 8,",
            "shfl.sync.bfly.b32 \t%r20, %r19, 4,",
        ),
        ("gelu", "0f3D372713", "0f3D400000"),  # 0.044715 and 0.046875
    ],
)
def test_what_a_tolerance_passes_is_found(name: str, before: str, after: str):
    subject = subject_named(name)
    if before not in subject.text:
        pytest.fail(f"{before} is not in {name}")
    assert verdict(subject, subject.text.replace(before, after, 1)) in ("algebra only", "both")


def test_kernels_of_every_kind_are_there():
    assert len(SUBJECTS) >= 20
