"""Arrays and one document in a safetensors file: read with suspicion, written whole or not at all.

Nothing is believed before it is checked, and nothing is allocated that the file itself is not large enough
for. What the arrays mean is not known here. The package safetensors reads the format; it writes metadata in
an order that changes from process to process, so files are written here: the same model, the same bytes.
"""

from __future__ import annotations

import json
import math
import os
import reprlib
import stat
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from budgetforest.runtime.atomic import replacing
from budgetforest.runtime.errors import InvalidData, NotAModelFile

Array = NDArray[Any]

LONGEST_HEADER = 2**24
"""Bytes of a header: names, categories and recipes; ten thousand features take a twentieth of it."""
LARGEST_FILE = 2**32
"""Bytes of a file: a hundred trees of a million rows."""
DOCUMENT, CHECKSUM = "budgetforest", "crc32"
"""The two entries of the metadata."""
DTYPES = {"I64": "<i8", "U64": "<u8", "I32": "<i4", "U8": "|u1", "F64": "<f8"}
"""Dtypes of the format that model files use, as numpy names them."""


class ArrayKind(NamedTuple):
    """What an array must be."""

    dtype: str
    """As the format names it."""
    dimensions: int = 1


def write(path: str | os.PathLike[str], arrays: Mapping[str, Array], document: Mapping[str, Any]) -> None:
    """Write a file beside ``path`` and put it in its place: a kill leaves the old file or the new one."""
    content = packed(arrays, json.dumps(document, allow_nan=False))
    with replacing(path) as beside, open(beside, "wb") as file:
        file.writelines(content)


def packed(arrays: Mapping[str, Array], text: str) -> list[bytes | memoryview]:
    """The parts of a file: length of the header, header, and the arrays, widest first to be aligned."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": {DOCUMENT: text, CHECKSUM: checksum(text, arrays)}}
    end = 0
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in order:
        array, start = arrays[name], end
        end += array.nbytes
        header[name] = {
            "dtype": names[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [start, end],
        }
    front = json.dumps(header).encode()
    front += b" " * (-len(front) % 8)
    if len(front) > LONGEST_HEADER or 8 + len(front) + end > LARGEST_FILE:
        raise InvalidData(
            f"the model has {len(front)} bytes of names and {end} of arrays; a file holds {LONGEST_HEADER} "
            f"and {LARGEST_FILE}: train with fewer categories or trees"
        )
    return [len(front).to_bytes(8, "little"), front, *(arrays[name].data for name in order)]


def checksum(text: str, arrays: Mapping[str, Array]) -> str:
    """CRC-32 over the document, then name, dtype, shape and bytes of every array in the order of names."""
    crc = zlib.crc32(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.data, crc)
    return f"{crc:08x}"


def read(
    path: str | os.PathLike[str], kinds_of: Callable[[dict[str, Any]], Mapping[str, ArrayKind]]
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the document of a file; ``kinds_of`` a document says which arrays there must be."""
    content, header = _content(path)
    text, crc = _metadata(parsed(header, "header").get("__metadata__"))
    document = parsed(text, "document")
    arrays = _arrays(content, kinds_of(document))
    if checksum(text, arrays) != crc:
        raise NotAModelFile("its checksum does not agree: the file is damaged; take another copy of it")
    return arrays, document


def _content(path: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """All bytes of a file that is not too large, and those of its header.

    They are read, not mapped: a file that is cut short under a map would end the process.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotAModelFile("it is no file with content of its own")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not 8 < size <= LARGEST_FILE:
            raise NotAModelFile(
                f"it has {size} bytes; a model file has more than 8 and at most {LARGEST_FILE}"
            )
        length = int.from_bytes(file.read(8), "little")
        if length > min(LONGEST_HEADER, size - 8):
            raise NotAModelFile(
                f"its header claims {length} bytes; it is no safetensors file, or is cut short"
            )
        file.seek(0)
        content = file.read(size)
    if len(content) != size:
        raise NotAModelFile("it changed while it was read; load it again")
    return content, content[8 : 8 + length]


def _arrays(content: bytes, kinds: Mapping[str, ArrayKind]) -> dict[str, Array]:
    """The arrays, which must be these; safetensors checks that they fill the file without gap or overlap."""
    try:
        found = dict(deserialize(content))
    except SafetensorError as error:
        raise NotAModelFile(f"it is no sound safetensors file: {error}") from None
    if set(found) != set(kinds):
        odd = sorted(set(found) ^ set(kinds))[0]
        raise NotAModelFile(f"array {reprlib.repr(odd)} is {'unknown' if odd in found else 'absent'}")
    arrays = {}
    for name, kind in kinds.items():
        dtype, shape = found[name]["dtype"], found[name]["shape"]
        if dtype != kind.dtype or len(shape) != kind.dimensions:
            raise NotAModelFile(
                f"array {name!r} is {dtype} of shape {shape}; it must be {kind.dtype} of {kind.dimensions} "
                f"dimension{'s' * (kind.dimensions > 1)}"
            )
        arrays[name] = np.frombuffer(bytes(found[name]["data"]), DTYPES[dtype]).reshape(shape)
    return arrays


def parsed(text: str | bytes, what: str) -> dict[str, Any]:
    """A JSON object; NaN and infinities are no JSON."""
    try:
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise NotAModelFile(f"its {what} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotAModelFile(f"its {what} is a {type(found).__name__}; it must be a JSON object")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def _metadata(entries: Any) -> tuple[str, str]:
    """The document and its checksum."""
    named = isinstance(entries, dict) and set(entries) == {DOCUMENT, CHECKSUM}
    if not named or not all(isinstance(entry, str) for entry in entries.values()):
        raise NotAModelFile(
            f"its metadata must be the texts {DOCUMENT!r} and {CHECKSUM!r}; "
            "it may be some other safetensors file"
        )
    try:
        entries[DOCUMENT].encode()
    except UnicodeEncodeError:
        raise NotAModelFile("its document is not valid text") from None
    return entries[DOCUMENT], entries[CHECKSUM]
