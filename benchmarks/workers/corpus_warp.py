"""Writes what NVIDIA Warp makes of a few kernels into a folder."""

# Installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportInvalidTypeForm=false
# pyright: reportUnusedVariable=false, reportUnusedExpression=false

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import warp as wp


@wp.kernel
def wave(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * wp.sin(x[i]) + wp.sqrt(wp.abs(y[i]))


@wp.kernel
def springs(
    x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3), h: float
):
    i = wp.tid()
    for j in range(3):
        d = x[i] - x[(i + j) % x.shape[0]]
        length = wp.length(d)
        if length > 1.0e-6:
            wp.atomic_add(f, i, -wp.normalize(d) * (length - 1.0))
    v[i] = v[i] + f[i] * h
    x[i] = x[i] + v[i] * h


@wp.kernel
def turn(q: wp.array(dtype=wp.quat), m: wp.array(dtype=wp.mat33), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = wp.quat_rotate(q[i], m[i] * wp.vec3(1.0, 2.0, 3.0)) + wp.vec3(wp.determinant(m[i]))


@wp.kernel
def noise(seed: int, out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    n = wp.int32(0)
    while wp.randf(state) > 0.1:
        n += 1
    out[i] = wp.float64(n) / wp.exp(wp.float64(wp.randn(state)))


def main() -> None:
    wp.config.quiet = True
    wp.init()
    for target in (75, 80, 90):
        for backward in (False, True):
            with tempfile.TemporaryDirectory() as scratch:
                title = f"kernels-sm_{target}{'-backward' * backward}"
                try:
                    options = {"enable_backward": backward, "fast_math": backward}
                    wp.set_module_options(options)
                    wp.compile_aot_module(
                        sys.modules[__name__], arch=target, use_ptx=True, module_dir=scratch
                    )
                    for made in Path(scratch).glob("**/*.ptx"):
                        # Warp leaves the NUL behind the text that NVRTC hands over
                        text = made.read_text("utf-8").rstrip("\0")
                        Path(sys.argv[1], f"{title}.ptx").write_text(text, "utf-8")
                except Exception as error:
                    print(f"left out: {title}: {error}".splitlines()[0], file=sys.stderr)


if __name__ == "__main__":
    main()
