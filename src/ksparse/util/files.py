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
    """Return the target of a symbolic link; raise OSError if it is a loop."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path  # Path.resolve raises RuntimeError on a loop
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def write_atomically(path: Path, content: str | bytes, *, replace: bool = True) -> None:
    """Write content to path; a reader, also after a killed run, sees the old file or the new one, never a part.

    replace=False refuses to overwrite a file, also one created during the call. Links are followed, file modes kept.
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
    """Move a file to a path where no file may exist."""
    try:
        path.hardlink_to(part)  # atomic, and fails if the path exists
    except OSError:  # the path exists, or the file system has no hard links
        if path.exists():
            raise FileExistsError(f"{path} exists") from None
        part.replace(path)


def probe(path: Path) -> None:
    """Raise the OSError that writing to path would raise."""
    part = _part(_followed(path))
    part.touch()
    part.unlink()


def sweep(folder: Path) -> None:
    """Remove temporary files that killed runs left in a folder; those of live runs stay."""
    for part in folder.glob(".*.part"):
        named = _PART.fullmatch(part.name)
        if named and not _lives(int(named[1])):
            part.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except OSError as error:  # another error means that it belongs to another user
        return not isinstance(error, ProcessLookupError)
    return True
