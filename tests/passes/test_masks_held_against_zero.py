"""What only is held against zero is no `lop3`: ptxas crashes where it guards a store."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir import emulator

TEXT = """
func.func @k(%y: !ptx.ptr<global>) attributes {{ptx.ntid = 64 : i64}} {{
  %tid = ptx.special "tid.x"
  %zero = arith.constant 0 : index
  %low = arith.constant 15 : index
  %bit = arith.constant {bit} : index
  %one = arith.constant 1 : index
  %b = arith.andi %tid, %low : index
  %h = arith.shrui %tid, %one : index
  %a = arith.andi %h, %bit : index
  %c = arith.{op} %a, %b : index
  %is = arith.cmpi {relation}, {operands} : index
  %at = ptx.offset %y, %tid * 4 : !ptx.ptr<global> -> !ptx.ptr<global>
  scf.if %is {{
    %v = ptx.special "laneid"
    %w = arith.index_cast %v : index to i32
    ptx.store %w, %at[0] : i32, !ptx.ptr<global>
  }}
  func.return
}}
"""


@pytest.mark.parametrize("op", ["xori", "ori"])
@pytest.mark.parametrize("relation", ["eq", "ne"])
@pytest.mark.parametrize("operands", ["%c, %zero", "%zero, %c", "%c, %one"])
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_masks(target: str, operands: str, relation: str, op: str) -> None:
    text = TEXT.format(op=op, relation=relation, operands=operands, bit=16)
    kernel = fragir.compile(text, target=target)
    assert kernel.assembled.cubin
    assert ("lop3" in kernel.ptx) == ("%one" in operands)  # of the others ptxas makes one
    tid = np.arange(64)
    combined = (tid >> 1 & 16) ^ (tid & 15) if op == "xori" else (tid >> 1 & 16) | (tid & 15)
    holds = (combined == ("%one" in operands)) == (relation == "eq")
    y = np.full(64, 99, np.uint32)
    emulator.run(kernel.ptx, "k", block=(64,), arguments=[y])
    assert (y == np.where(holds, tid % 32, 99)).all()
