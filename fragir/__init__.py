"""fragir: an IR for NVIDIA's tensor cores, from matrix programs to checked PTX.

>>> import fragir
>>> kernel = fragir.compile(program, target="sm_80")     # doctest: +SKIP
>>> kernel(a, b, c)                                      # doctest: +SKIP

`compile` takes MLIR text or a module; `kernel` begins a kernel in Python; `lower`, `emit` and
`lift` are single steps, `explain_layouts` says why tiles lie as they do. The rooms, each imported
when it is used: `isa` has the instructions, `layout` the layouts, `emulator` runs PTX, `ptx` reads
and writes it, `reference` says what programs mean, `scheduling` what schedules cost, `host` runs
several kernels, `builder` is what `kernel` gives, `judge` says whether PTX is right, `explain` and
`explore` make pages to look at.
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # takes as long as all else here

        return version("fragir")
    try:
        return _named(name)
    except AttributeError:
        if name in __all__ or name.startswith("_"):
            raise
        import difflib

        near = difflib.get_close_matches(name, __all__, n=3)
        hint = f"; there is {', '.join(near)}" if near else ""
        raise AttributeError(f"module 'fragir' has no attribute {name!r}{hint}") from None
