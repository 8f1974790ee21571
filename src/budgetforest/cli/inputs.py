"""What commands read: a model, and data from a file or a database."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from budgetforest.runtime.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from budgetforest.data.costs import Costs
    from budgetforest.files.learning import Labelled
    from budgetforest.files.source import Source
    from budgetforest.report.missing import Lacks
    from budgetforest.trees.forest import Forest

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DATA = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
STDIN = Path("-")


class Amount(click.FloatRange):
    """A number within a range; what is not a number is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


BUDGET = Amount(0, min_open=True)


def model_argument(command: Command) -> Command:
    """The MODEL of a command, and for which budget it is used."""
    command = click.option("--budget", type=BUDGET, help="A smaller budget than that of the training.")(
        command
    )
    return click.argument("model", type=FILE)(command)


def data_options(command: Command) -> Command:
    """The DATA of a command: a file, - for stdin, or a query with ``--sql`` and ``--from``."""
    command = click.option(
        "--from", "database", metavar="DB", help="app.duckdb, sqlite:app.db or postgres://..."
    )(command)
    command = click.option("--sql", metavar="QUERY", help='Rows of a query instead of a file: "select ..."')(
        command
    )
    command = decimal_options(command)
    command = click.option(
        "--encoding",
        metavar="NAME",
        expose_value=False,
        callback=_note_encoding,
        help="Of text files, as latin-1, cp1252 or utf-16.  [default: utf-8]",
    )(command)
    return click.argument("data", type=DATA, required=False)(command)


def decimal_options(command: Command) -> Command:
    """Which sign stands before decimals, or which one parts thousands: the same, said in two ways."""
    for name, told in (
        ("--thousands", "The sign that parts thousands; the other one is the decimal sign."),
        ("--decimal", "The decimal sign of numbers in texts; the other one parts thousands."),
    ):
        command = click.option(
            name, type=click.Choice([".", ","]), expose_value=False, callback=_note_sign, help=told
        )(command)
    return command


DECIMAL, ENCODING = "budgetforest.decimal", "budgetforest.encoding"


def _note_sign(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    from budgetforest.data.costs import OTHER

    known = ctx.meta.setdefault(DECIMAL, None)
    if value is None:
        return
    decimal = value if param.name == "decimal" else OTHER[value]
    if known not in (None, decimal):
        raise click.UsageError(f"--decimal and --thousands are both {value!r}; give one of them.", ctx)
    ctx.meta[DECIMAL] = decimal


def _note_encoding(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    from budgetforest.files.encoding import codec_of

    try:
        ctx.meta[ENCODING] = codec_of(name) if name is not None else None
    except InvalidParameter as error:
        raise click.BadParameter(str(error)) from None


def decimal_sign() -> str | None:
    """The decimal sign, if the command line says it."""
    sign: str | None = click.get_current_context().meta[DECIMAL]
    return sign


def target_option(command: Command) -> Command:
    """The column of the labels, and what to do about new categories."""
    command = unseen_option(command)
    return click.option("--target", metavar="COL", help="Column of the labels, if not that of the training.")(
        command
    )


def learning_options(command: Command) -> Command:
    """What somebody knows about the columns of training rows, in the order of ``Wish``."""
    for option in (
        click.option(
            "--missing", multiple=True, metavar="TEXT", help='A text for "missing", as -999; may be repeated.'
        ),
        click.option(
            "--categorical", multiple=True, metavar="COL", help="A column whose numbers are categories."
        ),
        drop_option,
        click.option("--target", required=True, metavar="COL", help="Column of the labels."),
    ):
        command = option(command)
    return command


def drop_option(command: Command) -> Command:
    """Columns that are no features."""
    return click.option(
        "--drop", multiple=True, metavar="COL", help="A column that is no feature; may be repeated."
    )(command)


def prices_option(command: Command) -> Command:
    """The price list of a training."""
    return click.option(
        "--costs", "prices", type=FILE, help="Price list, as from `costs template`; else 1 each."
    )(command)


def prices_of(prices: Path | None, names: Sequence[str]) -> Path | Costs | None:
    """The price list, read with the decimal sign of the command if it has one."""
    if prices is None or decimal_sign() is None:
        return prices
    from budgetforest.data.costs import read_costs

    return read_costs(prices, None, names, decimal_sign())


def unseen_option(command: Command) -> Command:
    """What to do about categories that training did not have."""
    return click.option(
        "--unseen-as-missing", "unseen", is_flag=True, help="Take categories new to the model as missing."
    )(command)


def load_model(path: Path, budget: float | None) -> Any:
    """A model file, at a budget."""
    from budgetforest import load

    model = load(path)
    return model if budget is None else model.at_budget(budget)


def is_pipe(data: Path) -> bool:
    """Whether DATA comes once, as text: from stdin, or a pipe that has a name."""
    return data == STDIN or not data.is_file()


def open_stream(data: Path) -> tuple[BinaryIO, str]:
    """Delimited text as UTF-8, closed when the command ends, and what it is called."""
    from budgetforest.files.encoding import as_utf8
    from budgetforest.files.header import open_text

    context = click.get_current_context()
    file, name = sys.stdin.buffer, "stdin"
    if data != STDIN:
        file, name = context.with_resource(data.open("rb") if is_pipe(data) else open_text(data)), str(data)
    codec = context.meta[ENCODING]
    return (as_utf8(file, codec, name) if codec else file), name


def open_source(data: Path | None, sql: str | None, database: str | None, *, again: bool = False) -> Source:
    """The rows that a command was given, to be read once, or ``again``."""
    if (data is None) == (sql is None):
        raise click.UsageError("give either a file DATA or a query --sql")
    if database is not None and sql is None:
        raise click.UsageError("--from names a database; say with --sql what to read from it")
    if sql is not None:
        from budgetforest.files.typed import open_query

        return open_query(sql, database)
    assert data is not None
    from budgetforest.files.delimited import Delimited
    from budgetforest.files.piped import Piped, copied
    from budgetforest.files.typed import FORMATS, open_file

    if not is_pipe(data) and data.suffix.lower() in FORMATS:
        return open_file(data)
    context = click.get_current_context()
    decimal = context.meta[DECIMAL]
    if not is_pipe(data) and not context.meta[ENCODING]:
        return Delimited(data, decimal=decimal)
    file, name = open_stream(data)
    if again:
        return Delimited(context.with_resource(copied(file)), name, decimal)
    return Piped(file, name, decimal)


def labelled_rows(
    source: Source, model: Any, target: str | None, *, unseen: bool, whole: bool = False
) -> Labelled:
    """All rows of a source with their labels, as the model knows them; ``whole``: with unused features."""
    from budgetforest.files import applying
    from budgetforest.runtime.progress import late_progress

    forest = model.forest_
    target = target or forest.schema.target
    if target is None:
        raise InvalidData("the model does not say which column has the labels; name it with --target")
    with late_progress("reading", source.size) as tell:
        rows = applying.labelled_rows(
            source,
            forest.schema,
            target,
            forest.classes,
            asked=None if whole else model.used_features(answer="proba", at_any_budget=True),
            unseen=unseen,
            tell=tell,
        )
    tell_unlabelled(rows.unlabelled, target)
    return rows


def tell_unlabelled(rows: int, target: str) -> None:
    """Say how many rows had no label."""
    if rows:
        click.echo(f"note: {rows} rows without a label in {target!r} are left out", err=True)


def tell_lacks(lacks: Lacks | None, forest: Forest) -> None:
    """Say what rows lacked that they asked for, if there were any."""
    if lacks and (told := lacks.told(forest.schema.names)):
        click.echo(f"note: {told}", err=True)
