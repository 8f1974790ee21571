"""``python -m benchmarks`` measures speed and savings, ``... paper`` the paper's figures, ``... frontier`` who errs least."""

import warnings
from pathlib import Path

import click
import matplotlib

from benchmarks import availability, curve, data, estimates, exit, external, frontier, paper, speed
from budgetforest import BudgetForestWarning

quick_ = click.option("--quick", is_flag=True, help="Few rows and settings: minutes at most, for tests.")
out_ = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write instead of docs/."
)


@click.group(invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure speed, what certain exit saves and the README's curve, or what is named; results are written beside this package."""
    warnings.simplefilter("ignore", BudgetForestWarning)  # a constant column is no news here
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "budgetforest"  # the same picture is the same file
    if context.invoked_subcommand is None:
        for run in (speed.run, exit.run, curve.run):
            run()


main.command("exit", help=exit.run.__doc__)(exit.run)
main.command("curve", help=curve.run.__doc__)(curve.run)
main.command("availability", help=availability.run.__doc__)(availability.run)


@main.command("speed")
@click.argument("names", nargs=-1, type=click.Choice(list(speed.TOPICS)))
@quick_
@out_
def speed_(names: tuple[str, ...], quick: bool, out: Path | None) -> None:
    """Measure speed beside the peers, all topics or the NAMES, and write the page of speed."""
    speed.run(names, quick=quick, out=out)


@main.command("paper")
@click.argument("names", nargs=-1, type=click.Choice(list(paper.EXPERIMENTS)))
@quick_
@out_
def paper_(names: tuple[str, ...], quick: bool, out: Path | None) -> None:
    """Measure the paper's tables and figures, all or the NAMES, and write the page of results."""
    paper.run(names, quick=quick, out=out)


@main.command("frontier")
@click.argument("sets", nargs=-1, type=click.Choice(data.names()), metavar="[SETS]...")
@quick_
@click.option("--again", is_flag=True, help="Measure budgetforest anew, beside what was kept of its peers.")
@out_
def frontier_(sets: tuple[str, ...], quick: bool, again: bool, out: Path | None) -> None:
    """Compare budgetforest with the best peer at every budget, on all data sets or the SETS."""
    frontier.run(sets, quick=quick, again=again, out=out)


@main.command("external")
@click.argument("names", nargs=-1, type=click.Choice(external.NAMES))
@quick_
@out_
def external_(names: tuple[str, ...], quick: bool, out: Path | None) -> None:
    """Measure tables that others printed, all or the NAMES, and write their page."""
    external.run(names, quick=quick, out=out)


@main.command("estimates")
@quick_
@out_
def estimates_(quick: bool, out: Path | None) -> None:
    """Compare the errors that fits show with those on new rows, and write their page."""
    estimates.run(quick=quick, out=out)


@main.command("cluster")
@click.argument("names", nargs=-1, type=click.Choice(["sent", "clock", "memory", "constants"]))
@quick_
@out_
def cluster_(names: tuple[str, ...], quick: bool, out: Path | None) -> None:
    """Measure what a training on a cluster sends and takes, and write the page of that."""
    from benchmarks import cluster  # its workers start this file again, and Dask is slow to import

    cluster.run(names, quick=quick, out=out)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
