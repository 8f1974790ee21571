"""Delimited text from a pipe: read once, as it comes, or copied to a temporary file to be read again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from budgetforest.files.delimited import Delimited
from budgetforest.files.header import header_of


class Piped(Delimited):
    """Delimited text in an open file; its rows can be read a second time if the file can be rewound."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.header = header_of(file, name)
        self.names = self.header.names
        self.size = None
        self._file = file
        self._begun = False

    @contextmanager
    def _rows(self) -> Iterator[BinaryIO]:
        """The file, which stands at its first row when it is read for the first time."""
        if self._begun:
            self._file.seek(self.header.size)
        self._begun = True
        yield self._file


@contextmanager
def copied(pipe: BinaryIO) -> Iterator[BinaryIO]:
    """What a pipe holds, in a temporary file without a name: whatever happens, none is left."""
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(pipe, file, 1 << 20)
        file.seek(0)
        yield file
