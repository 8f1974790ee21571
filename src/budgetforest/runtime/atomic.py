"""Files that are whole or absent: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty file beside ``path`` to fill; at the end it takes the place of ``path``.

    A kill at any moment leaves the old file or the new one, after an error nothing is left. The new file can
    be read by whoever could read the old one, and nobody else.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.stem}.{os.urandom(4).hex()}.part{target.suffix}")
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if target.exists():
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
        yield beside
        _sync(beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":
        _sync(target.parent)  # the new name is to last, too


def _sync(path: Path) -> None:
    """Wait until the disk has a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
