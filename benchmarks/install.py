"""Install the libraries of the extra `bench` one by one; print and skip those that cannot be installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    for wanted in project["optional-dependencies"]["bench"]:
        if wanted.startswith("ksparse"):  # make did that
            continue
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--prefer-binary",
            wanted,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        last = (done.stderr.strip().splitlines() or [""])[-1]
        print(f"{wanted}: {'installed' if done.returncode == 0 else f'left out, {last}'}", flush=True)


if __name__ == "__main__":
    main()
