from .programs import Ran as Ran
from .programs import explain as explain
from .programs import explain_ptx as explain_ptx
from .report import ProgramReport as ProgramReport

__all__ = [
    "ProgramReport",
    "Ran",
    "explain",
    "explain_ptx",
]
