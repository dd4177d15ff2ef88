"""A verdict on a kernel of PTX: for which schedules and values it holds, what nobody looked at.

    verdict = fragir.judge.judge(open("softmax.ptx").read(), "cases.py:cases")
    print(verdict.word, verdict.reasons)

`fragir judge` does it from the command line; docs/judge.md says what is proved.
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
