"""Atomic file writes: a file is written next to its target, then moved into place."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

_PART = re.compile(r"\..+\.(\d+)\.part")  # .NAME.PID.part


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name[:200]}.{os.getpid()}.part")


def _followed(path: Path) -> Path:
    """Return what a link leads to; an OSError where it leads back to itself."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path  # Path.resolve raises a RuntimeError on a loop
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def write_atomically(path: Path, content: str | bytes, *, replace: bool = True) -> None:
    """Put content at path; a reader, or a run that was killed, sees the old file or the new one, never a part.

    replace=False refuses a file that is already there, also one that came while the content was made. A link is followed, a mode kept.
    """
    data = content.encode() if isinstance(content, str) else content
    path = _followed(path)
    part = _part(path)
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        if replace:
            part.replace(path)
        else:
            _place(part, path)
    finally:
        part.unlink(missing_ok=True)


def _place(part: Path, path: Path) -> None:
    """Move a file to a place where there must be none."""
    try:
        path.hardlink_to(part)  # fails where there is one, without a moment in between
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(f"{path} exists") from None
        part.replace(path)


def probe(path: Path) -> None:
    """Raise the OSError that writing to path would end in."""
    part = _part(_followed(path))
    part.touch()
    part.unlink()


def sweep(folder: Path) -> None:
    """Remove the parts that a killed run left in a folder; those of a run that lives stay."""
    for part in folder.glob(".*.part"):
        named = _PART.fullmatch(part.name)
        if named and not _lives(int(named[1])):
            part.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # there, but not ours to signal
        return True
    return True
