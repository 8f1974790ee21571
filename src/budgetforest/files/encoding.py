"""Text of another encoding as UTF-8, the one that is read: decoded and encoded again as it streams."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from encodings.aliases import aliases
from typing import TYPE_CHECKING, BinaryIO

from budgetforest.runtime.errors import InvalidData, InvalidParameter, near

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 20
"""Bytes decoded at a time."""
UTF_8 = ("utf-8", "utf-8-sig")
"""Read as they are, a byte order mark passed over."""


def codec_of(name: str) -> str | None:
    """The name that Python has for an encoding; None for UTF-8, which needs none.

    >>> codec_of("Latin1"), codec_of("UTF8")
    ('iso8859-1', None)
    """
    try:
        "".encode(name)  # codecs that are no texts refuse it
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        known = sorted({spelt.replace("_", "-") for spelt in aliases})
        raise InvalidParameter(
            f"encoding must be one that Python knows, as latin-1, cp1252 or utf-16; got {name!r}: "
            f"{near(name, known)}"
        ) from None
    return None if codec in UTF_8 else codec


def as_utf8(file: BinaryIO, codec: str, name: str) -> BinaryIO:
    """What a file holds, in UTF-8."""
    return io.BufferedReader(_Chunks(_recoded(file, codec, name)), CHUNK)


class _Chunks(io.RawIOBase):
    """A file of bytes that come in pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer as far as the piece goes; 0 at the end."""
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        room = memoryview(buffer).cast("B")
        size = min(len(room), len(self._left))
        room[:size], self._left = self._left[:size], self._left[size:]
        return size


def _recoded(file: BinaryIO, codec: str, name: str) -> Iterator[bytes]:
    """Pieces of UTF-8, none of them empty; what cannot be decoded is named with its line."""
    decoder = codecs.getincrementaldecoder(codec)()
    line, more = 1, True
    while more:
        raw = file.read(CHUNK)
        more = bool(raw)
        try:
            text = decoder.decode(raw, not more)
        except UnicodeDecodeError as error:
            line += _lines_before(error, decoder)
            wrong = error.object[error.start : error.end]
            raise InvalidData(
                f"{name}, line {line}: the bytes {wrong.hex(' ')} are no {codec}; give another --encoding"
            ) from None
        except UnicodeError as error:  # no byte order mark
            raise InvalidData(f"{name} is no {codec}: {error}; try --encoding {codec}-le") from None
        line += text.count("\n")
        if text:
            yield text.encode("utf-8", "surrogatepass")  # DuckDB names the line of half a pair


def _lines_before(error: UnicodeDecodeError, decoder: codecs.IncrementalDecoder) -> int:
    """How many lines end before what cannot be decoded; the error has what was left of the last piece."""
    decoder.setstate((b"", decoder.getstate()[1]))
    try:
        return decoder.decode(error.object[: error.start]).count("\n")
    except UnicodeError:  # no byte order mark
        return 0
