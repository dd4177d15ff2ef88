"""Random functions of linalg: the program, the reference of the undivided function, and numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.linalg.functions import RandomFunction
from tests.linalg.judging import judged


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_program_reference_and_numpy_agree(data: st.DataObject) -> None:
    function = RandomFunction(
        lambda options: data.draw(st.sampled_from(options)),
        data.draw(st.integers(1, 6)),
        data.draw(st.booleans()),
    )
    assume(function.result not in function.arguments)
    (found,) = judged(
        function.text,
        [x.name[1:] for x in function.arguments],
        [x.array for x in function.arguments],
        data.draw(st.sampled_from(["sm_80", "sm_90a"])),
    )
    wanted = np.asarray(function.result.array, np.float64)
    scale = np.abs(wanted).max(initial=1)
    assert np.abs(found - wanted).max(initial=0) <= 1e-3 * scale
