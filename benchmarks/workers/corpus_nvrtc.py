"""Writes what NVRTC makes of tests/foreign/cuda and tests/ptx/kernels into a folder."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    ROOT / "tests/foreign/cuda/control.cu",
    ROOT / "tests/foreign/cuda/elementwise.cu",
    ROOT / "tests/foreign/cuda/mma.cu",
    ROOT / "tests/ptx/kernels/tensor.cu",
)
# NVRTC has no headers of the C library
SHIMS = {
    "stdint.h": """#pragma once
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
""",
    "stddef.h": "#pragma once\n",
    "assert.h": "#pragma once\n#define assert(x)\n",
    "string.h": "#pragma once\n",
    "limits.h": "#pragma once\n",
    "stdlib.h": "#pragma once\n",
}


def library() -> tuple[ctypes.CDLL, list[str]]:
    """libnvrtc of the packages from PyPI, and the folders of their headers."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(r) for r in (spec and spec.submodule_search_locations) or ()]
    found = [p for root in roots for p in root.glob("**/libnvrtc.so.*") if "alt" not in p.name]
    headers = [
        str(p) for root in roots for p in root.glob("**/include") if (p / "cuda_fp16.h").is_file()
    ]
    return ctypes.CDLL(str(found[0])), headers


def compiled(nvrtc: ctypes.CDLL, source: Path, options: list[str]) -> bytes:
    program = ctypes.c_void_p()
    names = (ctypes.c_char_p * len(SHIMS))(*(name.encode() for name in SHIMS))
    texts = (ctypes.c_char_p * len(SHIMS))(*(text.encode() for text in SHIMS.values()))
    text = source.read_bytes()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text, source.name.encode(), len(SHIMS), texts, names
    )
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    size = ctypes.c_size_t()
    way = "ProgramLog" if failed else "PTX"
    getattr(nvrtc, f"nvrtcGet{way}Size")(program, ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{way}")(program, out)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        errors = [line for line in out.value.decode().splitlines() if "error" in line]
        raise RuntimeError((errors or ["failed"])[0])
    return out.value


def main() -> None:
    folder = Path(sys.argv[1])
    nvrtc, headers = library()
    number = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(number))
    known = (ctypes.c_int * number.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    wanted: tuple[tuple[str, list[str]], ...] = (
        ("75", []),
        ("80", ["-lineinfo"]),
        ("89", ["-G"]),
        ("90a", []),
        ("100a", []),
    )
    for source in SOURCES:
        for target, more in wanted:
            if int(target.rstrip("a")) not in list(known):
                continue
            if source.stem == "mma" and target == "75":
                continue  # its cp.async is for sm_80
            options = [
                f"-arch=compute_{target}",
                "-std=c++17",
                "-default-device",
                "-device-int128",
                *more,
            ]
            options += [f"-I{path}" for path in headers]
            title = f"{source.stem}-sm_{target}{''.join(more)}"
            try:
                text = compiled(nvrtc, source, options)
            except RuntimeError as error:
                print(f"left out: {title}: {error}", file=sys.stderr)
                continue
            (folder / f"{title}.ptx").write_bytes(text)


if __name__ == "__main__":
    main()
