from .judging import ASSUMPTIONS as ASSUMPTIONS
from .search import NeedOf as NeedOf
from .search import NotNeeded as NotNeeded
from .search import not_needed as not_needed
