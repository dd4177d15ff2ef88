from .judging import ASSUMPTIONS as ASSUMPTIONS
from .not_needed import NeedOf as NeedOf
from .not_needed import NotNeeded as NotNeeded
from .not_needed import not_needed as not_needed
