"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import click

from budgetforest import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="budgetforest")
def main() -> None:
    """Random forests for when features cost something at prediction time."""


@main.command()
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2, 20))
def demo(folds: int) -> None:
    """Train within a budget, compare with scikit-learn, decide one row feature by feature."""
    from rich.console import Console

    from budgetforest.demo import run

    run(Console(), folds)
