"""The command line: one file per command, with ``sources`` and ``output`` for what they share.

Nothing but click is imported until a command runs, so that help is there at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import click

from budgetforest import __version__
from budgetforest.cli.acquire import acquire
from budgetforest.cli.costs import costs
from budgetforest.cli.curve import curve
from budgetforest.cli.demo import demo
from budgetforest.cli.predict import predict
from budgetforest.cli.report import report
from budgetforest.cli.show import show
from budgetforest.cli.train import train
from budgetforest.errors import BudgetForestError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


class Commands(click.Group):
    """Errors of the package and the file system end a command with one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise  # click ends quietly when the reader of a pipe has gone
            except (BudgetForestError, OSError) as error:
                raise click.ClickException(str(error)) from error
            except KeyboardInterrupt:
                click.echo("stopped", err=True)
                raise click.exceptions.Exit(INTERRUPTED) from None


def _show_warning(message: Warning | str, *rest: Any) -> None:
    click.secho(f"note: {message}", fg="yellow", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="budgetforest")
def main() -> None:
    """Random forests for when features cost something at prediction time.

    DATA is a file: CSV, TSV, Parquet, Arrow or Feather. Exit codes: 0 done, 1 something is wrong with the
    data or the model, 2 with the command, 130 stopped by Ctrl-C.
    """


for command in (costs, train, predict, curve, acquire, report, show, demo):
    main.add_command(command)
