"""Installs the kit into a folder of its own, and runs it: `run.sh` calls this."""

import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE, CACHE = HERE / "site", HERE / "cache"


def install() -> None:
    """Unpacks wheels and data, once; half of it counts as nothing."""
    done = HERE / "installed"
    if done.exists():
        return
    for path in sorted((HERE / "wheels").glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(SITE)
    for name in ("data", "code"):
        with tarfile.open(HERE / f"{name}.tar.xz") as archive:
            archive.extractall(HERE, filter="data")
    # so that the processes of the steps need not compile it, each for itself
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", str(SITE / "fragir")]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    done.touch()


def environment() -> dict[str, str]:
    """Everything that anybody would write lies in this folder."""
    paths = [str(HERE / "code"), str(HERE / "code/benchmarks"), str(SITE)]
    paths += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    (CACHE / "tmp").mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "FRAGIR_CUBINS": str(HERE / "data/cubins"),
        "FRAGIR_CACHE": str(CACHE / "fragir"),
        "TRITON_CACHE_DIR": str(CACHE / "triton"),
        "CUDA_CACHE_PATH": str(CACHE / "cuda"),
        "XDG_CACHE_HOME": str(CACHE / "xdg"),
        "TMPDIR": str(CACHE / "tmp"),
    }


def main() -> int:
    start = time.monotonic()
    install()
    spent = time.monotonic() - start
    print(f"{spent:6.1f} s  installed", flush=True)
    command = [sys.executable, "-m", "benchmarks.gpu.session", str(HERE), *sys.argv[1:]]
    # the steps run in the kit's copy of the checkout
    hidden = ["--spent", f"{spent:.1f}", "--beside", os.getcwd()]
    return subprocess.run([*command, *hidden], env=environment(), cwd=HERE / "code").returncode


if __name__ == "__main__":
    sys.exit(main())
