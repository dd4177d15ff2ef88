from .plan import ArenaPlan as ArenaPlan
from .plan import LaunchStep as LaunchStep
from .plan import Lifetime as Lifetime
from .plan import ProgramPlan as ProgramPlan
from .plan import Temporary as Temporary
from .plan import first_fit as first_fit
from .plan import plan_of as plan_of
from .program import Program as Program

__all__ = [
    "ArenaPlan",
    "LaunchStep",
    "Lifetime",
    "Program",
    "ProgramPlan",
    "Temporary",
    "first_fit",
    "plan_of",
]
