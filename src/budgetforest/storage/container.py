"""Arrays and one document in a safetensors file: read with suspicion, written whole or not at all.

Nothing is believed before it is checked, and nothing is allocated that the file itself is not large enough
for. What the arrays mean is not known here.
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

from budgetforest.runtime.atomic import replacing
from budgetforest.runtime.errors import InvalidData, NotAModelFile

Array = NDArray[Any]

LONGEST_HEADER = 2**24
"""Bytes of a header: names, categories and recipes; ten thousand features take a twentieth of it."""
LARGEST_FILE = 2**32
"""Bytes of a file: a hundred trees of a million rows."""
DOCUMENT, CHECKSUM = "budgetforest", "crc32"
"""The two entries of the metadata."""
DTYPES = {"I64": "<i8", "I32": "<i4", "U8": "|u1", "F64": "<f8"}
"""Dtypes of the format that model files use, as numpy names them."""


class Kind(NamedTuple):
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
    path: str | os.PathLike[str], kinds_of: Callable[[dict[str, Any]], Mapping[str, Kind]]
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the document of a file; ``kinds_of`` a document says which arrays there must be."""
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
        header = parsed(file.read(length), "header")
        text, crc = _metadata(header.pop("__metadata__", None))
        document = parsed(text, "document")
        kinds = kinds_of(document)
        places = _places(header, kinds, size - 8 - length)
        data = np.empty(size - 8 - length, np.uint8)  # numpy's memory comes in large pages
        complete = file.readinto(data.data) == len(data)
    data.flags.writeable = False
    if not complete:
        raise NotAModelFile("it changed while it was read; load it again")
    arrays = {
        name: np.ndarray(shape, DTYPES[kinds[name].dtype], data, start)
        for name, (shape, start) in places.items()
    }
    if checksum(text, arrays) != crc:
        raise NotAModelFile("its checksum does not agree: the file is damaged; take another copy of it")
    return arrays, document


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


def _places(
    header: Mapping[str, Any], kinds: Mapping[str, Kind], size: int
) -> dict[str, tuple[tuple[int, ...], int]]:
    """Shape and start of every array; together they fill the data without gap or overlap."""
    if set(header) != set(kinds):
        odd = sorted(set(header) ^ set(kinds))[0]
        raise NotAModelFile(f"array {reprlib.repr(odd)} is {'unknown' if odd in header else 'absent'}")
    found: dict[str, tuple[tuple[int, ...], int]] = {}
    spans = []
    for name, kind in kinds.items():
        shape, start, stop = _place(name, header[name], kind)
        length = math.prod(shape) * np.dtype(DTYPES[kind.dtype]).itemsize
        if stop - start != length:
            raise NotAModelFile(f"array {name!r} takes {stop - start} bytes; its shape needs {length}")
        found[name] = shape, start
        spans.append((start, stop))
    end = 0
    for start, stop in sorted(spans):
        if start != end:
            raise NotAModelFile(f"arrays overlap or leave a gap at byte {min(start, end)}")
        end = stop
    if end != size:
        raise NotAModelFile(f"arrays fill {end} bytes of {size}")
    return found


def _place(name: str, entry: Any, kind: Kind) -> tuple[tuple[int, ...], int, int]:
    """Shape, start and stop of one array."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise NotAModelFile(f"array {name!r} needs a dtype, a shape and data_offsets")
    if entry["dtype"] != kind.dtype:
        raise NotAModelFile(
            f"array {name!r} has dtype {reprlib.repr(entry['dtype'])}; it must be {kind.dtype}"
        )
    shape, span = entry["shape"], entry["data_offsets"]
    if not _is_sizes(shape, kind.dimensions) or not _is_sizes(span, 2):
        raise NotAModelFile(
            f"array {name!r} has shape {reprlib.repr(shape)} at {reprlib.repr(span)}; "
            "both must be lists of sizes"
        )
    return tuple(shape), span[0], span[1]


def _is_sizes(values: Any, length: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == length
        and all(type(value) is int and 0 <= value <= LARGEST_FILE for value in values)
    )
