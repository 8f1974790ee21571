"""``python -m benchmarks`` runs every measurement; give names to run some."""

import warnings

import click

from benchmarks import curve, exit, paper, speed
from budgetforest import UnusualData

MEASUREMENTS = {"speed": speed.run, "exit": exit.run, "curve": curve.run, "paper": paper.run}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MEASUREMENTS)))
def main(names: tuple[str, ...]) -> None:
    """Run the measurements NAMES (all but paper by default) and write their results beside this package."""
    warnings.simplefilter("ignore", UnusualData)  # a constant column is no news here
    for name in names or [n for n in MEASUREMENTS if n != "paper"]:
        MEASUREMENTS[name]()


main()
