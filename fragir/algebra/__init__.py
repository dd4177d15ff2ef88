"""Which function of its inputs a program computes: values in two finite fields beside real ones.

Floating point rounds, so two programs for one function hardly ever give the same bits, and numbers
that are close say little. In a field there is no rounding: sums in any order, products split in any
way, a softmax that runs along are the same element. Inputs are random elements; where a kernel and
its reference give the same one for each output, they are the same rational function of the inputs
(and of powers of two of such functions), but for a probability of about degree / 2^31 a round
(Schwartz, Zippel). `Values` has several rounds side by side.
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
