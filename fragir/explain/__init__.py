"""The pass-by-pass view of a program: what every pass did to every layout, as one page.

    report = fragir.explain.explain(open("gemm.mlir").read(), target="sm_90a")
    open("gemm.html", "w").write(report.html())

`fragir explain` does it from the command line. A report is plain values (`fragir.explain.report`).
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
