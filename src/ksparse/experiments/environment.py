"""Where a run was made: machine, system, versions, threads."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

PACKAGES = ("ksparse", "numpy", "scipy", "scikit-learn", "piqp", "clarabel", "pandas", "matplotlib")


def environment() -> dict[str, str]:
    """What a reader needs to judge the times."""
    threads = sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
    found = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or "unknown"),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "linear algebra threads": ", ".join(threads) or "unknown",
    }
    return found | {package: _version(package) for package in PACKAGES}


@cache
def machine() -> str:
    """The same in one line, to stand beside a time."""
    found = environment()
    words = [found["processor"], f"{found['cores']} cores", f"threads: {found['linear algebra threads']}"]
    return ", ".join([*words, *(f"{package} {found[package]}" for package in ("ksparse", "numpy", "scipy"))])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown"
