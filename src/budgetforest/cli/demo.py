"""``budgetforest demo``."""

from __future__ import annotations

import click

from budgetforest.cli.output import json_option, write_json


@click.command()
@click.option("--folds", default=3, show_default=True, type=click.IntRange(2, 20))
@json_option
def demo(folds: int, as_json: bool) -> None:
    """Compare with scikit-learn on digits, and decide one row.

    Needs no file; writes demo-report.html into this folder.
    """
    from rich.console import Console

    from budgetforest.cli.demonstration import run

    console = Console(stderr=as_json, quiet=as_json)
    compared = run(console, folds)
    if as_json:
        write_json(compared)
