"""``budgetforest report``."""

from __future__ import annotations

from pathlib import Path

import click

from budgetforest.cli.output import json_option, write_json, written_whole
from budgetforest.cli.sources import (
    data_options,
    labelled_rows,
    load_model,
    model_argument,
    open_source,
    target_option,
)


@click.command()
@model_argument
@data_options
@target_option
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="[default: MODEL.html]")
@json_option
def report(
    model: Path,
    budget: float | None,
    data: Path | None,
    sql: str | None,
    database: str | None,
    target: str | None,
    unseen: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """One HTML file that shows what the model costs, errs and asks for, on the labelled rows of DATA."""
    loaded = load_model(model, budget)
    rows = labelled_rows(open_source(data, sql, database), loaded, target, unseen=unseen)
    path = out or Path(model.name).with_suffix(".html")
    with written_whole(path) as beside:
        loaded.report(rows.table, rows.labels).save(beside)
    if as_json:
        write_json({"report": str(path), "rows": len(rows.labels)})
    else:
        click.echo(f"wrote {path}")
