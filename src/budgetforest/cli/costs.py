"""``budgetforest costs``: price lists."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from budgetforest.cli.cells import guarded
from budgetforest.cli.inputs import data_options, drop_option, open_source, open_stream
from budgetforest.cli.output import OutFile, WritingCommand, json_option, text_output, write_json


@click.group()
def costs() -> None:
    """Price lists: `costs template` writes one to fill in."""


@costs.command(cls=WritingCommand)
@data_options
@click.option("--target", metavar="COL", help="Column of the labels, which has no price.")
@drop_option
@click.option("--out", type=OutFile(".csv", ".txt", ""), help="CSV file to write, else stdout.")
@json_option
def template(
    data: Path | None,
    sql: str | None,
    database: str | None,
    target: str | None,
    drop: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Write a price list to fill in: every feature of DATA at a cost of 1.

    Features that are bought together share a group. The first of them that a row acquires pays its cost,
    later ones their discount_cost, or their cost if theirs is empty. In a group without any discount_cost
    all have the same cost: the first pays it, the rest are free.
    """
    from budgetforest.data.costs import PRICE_COLUMNS
    from budgetforest.files.header import place_of

    names = _columns(data, sql, database)
    left_out = [target, *drop] if target is not None else list(drop)
    for name in left_out:
        place_of(name, names, "which should be left out", str(data or sql))
    features = [name for name in names if name not in left_out]
    if as_json:
        write_json([dict(zip(PRICE_COLUMNS, (name, 1, None, None), strict=True)) for name in features])
        return
    with text_output(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PRICE_COLUMNS)
        writer.writerows((guarded(name), 1, "", "") for name in features)
    if out is not None:
        click.echo(f"wrote {out}", err=True)


def _columns(data: Path | None, sql: str | None, database: str | None) -> tuple[str, ...]:
    """The columns of DATA; of a delimited file only the first line is read."""
    from budgetforest.files.header import header_of
    from budgetforest.files.typed import FORMATS

    if data is not None and sql is None and database is None and data.suffix.lower() not in FORMATS:
        return header_of(*open_stream(data)).names
    return open_source(data, sql, database).names
