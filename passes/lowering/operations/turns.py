"""Turns that roles take one after the other."""

from fragir.passes.lowering.turns import pass_turn as pass_turn
from fragir.passes.lowering.turns import take_turn as take_turn
