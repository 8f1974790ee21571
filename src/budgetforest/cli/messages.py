"""Messages of the package in the words of the command line, where parameters are options and rows are files.

Messages write a parameter as ``name=value``, or by its name if that is no English word; both are found here.
"""

from __future__ import annotations

import re
import shlex

import click

HERE = {
    "validation=(X, y)": "--validation FILE",
    "validation_fraction=": "a share of ",
    "refit=False": "--no-refit",
    "leave out columns that are no features": "leave out columns that are no features with --drop",
}
"""What has no option, or another value."""

GIVEN = re.compile(r"(?<!\w)'[^']*'|(?<![^\s(])([a-z_]+)(?:=('[^']*'|[\w.+-]+))?(?![\w'=/])")
"""What stands in quotes, as names from data do; else a word, perhaps with a value."""


def in_options(message: str) -> str:
    """A message for someone who types options.

    >>> in_options("max_trees=0 has no effect on method='paper'; give validation=(X, y)")
    '--max-trees 0 has no effect on --method paper; give --validation FILE'
    """
    from budgetforest.cli.train import train

    flags = [flag for option in train.params if isinstance(option, click.Option) for flag in option.opts]
    options = {flag.strip("-").replace("-", "_"): flag for flag in flags}

    def as_option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in options or (value is None and "_" not in name):
            return found[0]
        return " ".join([options[name], *([shlex.quote(value.strip("'"))] if value else [])])

    for python, here in HERE.items():
        message = message.replace(python, here)
    return GIVEN.sub(as_option, message)
