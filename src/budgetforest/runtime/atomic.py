"""Files that are whole or absent: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty file beside ``path`` to fill; at the end it takes the place of ``path``.

    A kill at any moment leaves the old file or the new one, after an error nothing is left. The new file has
    the mode of the old one, its owner and group where the system allows, and is the writer's alone till then.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.stem}.{os.urandom(4).hex()}.part{target.suffix}")
    try:
        before = target.stat() if target.exists() else None
        private = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(beside, private, 0o600 if before else 0o666))
        yield beside
        _sync(beside)
        if before:
            if os.name == "posix":
                with suppress(PermissionError):
                    os.chown(beside, before.st_uid, before.st_gid)
            os.chmod(beside, stat.S_IMODE(before.st_mode))
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
