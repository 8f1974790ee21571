"""``budgetforest check``: what training would make of some data, before it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from budgetforest.cli.inputs import (
    data_options,
    decimal_sign,
    learning_options,
    open_source,
    prices_option,
)
from budgetforest.cli.messages import in_options
from budgetforest.cli.output import json_option, print_table, write_json
from budgetforest.runtime.errors import BudgetForestError

if TYPE_CHECKING:
    from budgetforest.files.profile import Column, Finding, Profile
    from budgetforest.files.source import Source

SHOWN = 8
"""Classes that are listed, at most."""


@click.command()
@data_options
@learning_options
@prices_option
@json_option
def check(
    data: Path | None,
    sql: str | None,
    database: str | None,
    target: str,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    missing: tuple[str, ...],
    prices: Path | None,
    as_json: bool,
) -> None:
    """Say what training would make of DATA, and what in it is odd.

    Lists every column, then what is probably not meant, with the option that mends it. Exit code 1 means
    that `train` with the same options would refuse.
    """
    from budgetforest.files.learning import Wish
    from budgetforest.files.profile import profile
    from budgetforest.runtime.progress import late_progress

    source = open_source(data, sql, database, again=True)
    with late_progress("reading", source.size) as tell:
        found = profile(source, Wish(target, drop, categorical, missing), tell)
    findings = [*found.findings, *_about_training(found)]
    if prices is not None:
        findings += _about_prices(found, prices)
    findings.sort(key=lambda finding: not finding.refused)
    if as_json:
        write_json(_document(source, found, findings))
    else:
        _print(source, found, findings)
    if any(finding.refused for finding in findings):
        raise click.exceptions.Exit(1)


def _about_prices(found: Profile, prices: Path) -> list[Finding]:
    """Features without a price, prices without a feature, or what else is wrong with the list."""
    from budgetforest.data.costs import read_costs, unmatched
    from budgetforest.files.profile import Finding

    names = found.rows.table.schema.names
    try:
        unpriced, unknown = unmatched(prices, names, decimal_sign())
        if not unpriced and not unknown:
            read_costs(prices, None, names, decimal_sign())
    except BudgetForestError as error:
        return [Finding(None, in_options(str(error)), refused=True)]
    lines = (
        (unpriced, "features without a price", "give them one, 0 if they are free, or --drop them"),
        (unknown, "prices without a feature", "correct their names, or take their lines out"),
    )
    return [
        Finding(None, f"{prices}: {what}: {len(some)} ({_some(some)}); {hint}", refused=True)
        for some, what, hint in lines
        if some
    ]


def _about_training(found: Profile) -> Iterator[Finding]:
    """What training says before it grows a tree, of the columns that it takes."""
    from budgetforest import BudgetForestClassifier
    from budgetforest.estimators.fitting import checked
    from budgetforest.files.profile import Finding

    table = found.accepted
    if not table.shape[1] or len(found.classes) < 2:
        return
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            checked(BudgetForestClassifier(random_state=0), table, found.rows.labels)
        except BudgetForestError as error:
            yield Finding(None, in_options(str(error)), refused=True)
    for note in notes:
        yield Finding(None, in_options(str(note.message)))


def _document(source: Source, found: Profile, findings: list[Finding]) -> dict[str, Any]:
    return {
        "data": source.name,
        "rows": len(found.rows.labels),
        "unlabelled": found.rows.unlabelled,
        "repeated": found.repeated,
        "format": _format(source),
        "columns": [column._asdict() for column in found.columns],
        "classes": found.classes,
        "findings": [finding._asdict() for finding in findings],
        "trains": not any(finding.refused for finding in findings),
    }


def _print(source: Source, found: Profile, findings: list[Finding]) -> None:
    rows = f"{len(found.rows.labels)} rows with a label, {found.repeated:.1%} of them repeated"
    click.echo("; ".join(filter(None, [f"{source.name}: {rows}", _format(source)])))
    counts = [f"{label} {rows}" for label, rows in found.classes.items()]
    click.echo("classes: " + _some(counts, SHOWN))
    print_table(
        "columns",
        ("column", "values", "missing", "distinct", "range", "training"),
        [_cells(column) for column in found.columns],
    )
    click.echo(f"\n{len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}")
    for finding in findings:
        mark = click.style("refused: ", fg="red") if finding.refused else ""
        click.echo(f"- {mark}{finding.message}")
    refused = any(finding.refused for finding in findings)
    click.echo("training would refuse these data" if refused else "training would work")


def _cells(column: Column) -> tuple[str, ...]:
    missing = "" if column.missing is None else f"{column.missing:.1%}"
    reach = "" if column.low is None else f"{column.low:.6g} to {column.high:.6g}"
    distinct = "" if column.distinct is None else str(column.distinct)
    return column.name, column.kind, missing, distinct, reach, column.use


def _format(source: Source) -> str | None:
    """How the cells of a text file are parted, and their decimals written."""
    from budgetforest.files.delimited import TextSource

    if not isinstance(source, TextSource):
        return None
    decimal = "a point or a comma before decimals" if source.decimal_comma else "a point before decimals"
    if source.decimal:
        decimal = f"{source.decimal!r} before decimals, as --decimal says"
    return f"{source.header.delimiter!r} between cells, {decimal}"


def _some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
