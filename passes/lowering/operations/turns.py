"""Turns that roles take one after the other."""

from fragir.dialects import frag
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering import turns

LOWERINGS.attach(frag.TakeTurnOp)(turns.take_turn)
LOWERINGS.attach(frag.PassTurnOp)(turns.pass_turn)
