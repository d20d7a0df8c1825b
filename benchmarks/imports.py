"""Time of `import ksparse` and of its dependencies: python benchmarks/imports.py. The best of ten processes each."""

import os
import subprocess
import sys
import time

MODULES = ("numpy", "scipy.sparse", "scipy.optimize", "sklearn", "ksparse", "ksparse.estimators")
ROUNDS = 10


def seconds(module: str) -> float:
    # compiled once, as everywhere
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=environment)
    return time.perf_counter() - began


def main() -> None:
    bare = min(seconds("sys") for _ in range(ROUNDS))
    rounds = [{module: seconds(module) - bare for module in MODULES} for _ in range(ROUNDS)]
    best = {module: min(taken[module] for taken in rounds) for module in MODULES}
    for module, value in best.items():
        print(f"{module:>20} {value:6.3f} s {value / best['scipy.optimize']:6.2f} of scipy.optimize")


if __name__ == "__main__":
    main()
