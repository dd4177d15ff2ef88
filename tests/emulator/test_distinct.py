"""What stands for np.unique and np.intersect1d where a launch begins."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fragir.emulator.numbers.types import among, distinct

DTYPES = st.sampled_from([np.bool_, np.uint8, np.int16, np.uint32, np.int64])
SHAPES = st.sampled_from([(0,), (1,), (7,), (40,), (3, 5), (2, 0)])
ARRAYS = DTYPES.flatmap(lambda dtype: arrays(dtype, SHAPES))
PLACES = arrays(np.intp, SHAPES, elements=st.integers(0, 20))


@given(ARRAYS)
def test_distinct_values(values: npt.NDArray[Any]) -> None:
    before = values.copy()
    found = distinct(values)
    assert found.dtype == values.dtype
    assert found.tolist() == np.unique(values).tolist()
    assert (values == before).all()


@given(PLACES, PLACES)
def test_what_two_have_in_common(values: npt.NDArray[Any], others: npt.NDArray[Any]) -> None:
    assert among(values, distinct(others)).tolist() == np.intersect1d(values, others).tolist()


def test_a_small_launch_does_without_masked_arrays() -> None:
    """numpy imports them for np.unique: a tenth of the time that the launch takes."""
    text = """
import sys
import numpy
from fragir.emulator import run
run('''
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>; .reg .b64 %d<3>; .reg .pred %p;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2;
    setp.lt.u32 %p, %r1, 7; @%p bra DONE; st.global.u32 [%d1], %r1;
DONE: ret;
}
''', block=(64,), arguments=[numpy.zeros(64, "u4")], check=True)
print("numpy.ma" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
