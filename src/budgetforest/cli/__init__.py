"""The command line: one file per command, with ``inputs``, ``output`` and ``messages`` for what they share.

A command is imported when it is named, and what it needs when it runs: help is there at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any

import click

from budgetforest import __version__
from budgetforest.cli.messages import in_options
from budgetforest.runtime.errors import BudgetForestError

COMMANDS = ("check", "costs", "train", "predict", "curve", "acquire", "report", "show", "export", "demo")
"""In the order of their use; each is a function in the file of its name."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""
CLOSED_PIPE = 141
"""And where the reader of a pipe has gone."""


class Commands(click.Group):
    """Errors of the package and the file system end a command with one line and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"budgetforest.cli.{cmd_name}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            try:
                done = super().invoke(ctx)
                sys.stdout.flush()  # what goes wrong with the last lines is told as well
                return done
            except BrokenPipeError:
                _write_no_more()
                raise click.exceptions.Exit(CLOSED_PIPE) from None
            except (BudgetForestError, OSError) as error:
                try:
                    sys.stdout.flush()
                except OSError:  # a full disk; the error itself may be another's
                    _write_no_more()
                raise click.ClickException(in_options(str(error))) from error
            except KeyboardInterrupt:
                click.echo("stopped", err=True)
                raise click.exceptions.Exit(INTERRUPTED) from None


def _write_no_more() -> None:
    """What is still to be written goes nowhere, else Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *rest: Any) -> None:
    click.secho(f"note: {in_options(str(message))}", fg="yellow", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="budgetforest")
def main() -> None:
    """Random forests for when features cost something at prediction time.

    DATA is a file, CSV, TSV, Parquet, Arrow or Feather, - for CSV or TSV from stdin, or a query with
    --sql. Exit codes: 0 done, 1 something is wrong with the data or the model, 2 with the command, 130
    stopped by Ctrl-C, 141 the reader of a pipe has gone.
    """
