from .bounded import Bounded as Bounded
from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .evaluation import evaluate as evaluate
from .evaluation import outputs as outputs
