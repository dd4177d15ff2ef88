from .numpy_door import Values as Values
from .values import ROUNDS as ROUNDS
from .values import UnknownFunctionError as UnknownFunctionError
from .values import spelling as spelling
