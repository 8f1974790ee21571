"""Cells of the CSV files that commands write: quoted where necessary, and never run by a spreadsheet."""

from __future__ import annotations

import re

SPECIAL = re.compile(r'[",\r\n]')
"""What makes quotes necessary."""

FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What a text must not begin with, full-width signs among it: spreadsheets take it for a formula."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula, by an apostrophe before it; numbers stay numbers.

    >>> guarded("=1+1"), guarded("-1.5"), guarded("age")
    ("'=1+1", '-1.5', 'age')
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def listed(name: str) -> str:
    r"""A name in a list of names with a semicolon between them; its own semicolons follow a backslash.

    >>> print(listed("a;b"))
    a\;b
    """
    escaped = name.replace("\\", r"\\").replace(";", r"\;")
    return f"'{escaped}" if FORMULA.match(escaped) else escaped


def quoted(text: str) -> str:
    """A cell, guarded and in quotes if need be."""
    text = guarded(text)
    special = SPECIAL.search(text) or ";" in text  # which parts cells for many spreadsheets
    return '"' + text.replace('"', '""') + '"' if special else text
