"""Files that are whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import os
from pathlib import Path

SUFFIX = ".part"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Put content at path; a reader, or a run that was killed, sees the old file or the new one, never a part."""
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{os.getpid()}{SUFFIX}")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove the parts that a killed run left in a folder."""
    for part in folder.glob(f".*{SUFFIX}"):
        part.unlink(missing_ok=True)
