"""``budgetforest curve``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetforest.cli.inputs import (
    data_options,
    labelled_rows,
    load_model,
    model_argument,
    open_source,
    target_option,
    tell_lacks,
)
from budgetforest.cli.output import (
    OutFile,
    WritingCommand,
    json_option,
    print_table,
    write_json,
    written_whole,
)


@click.command(cls=WritingCommand)
@model_argument
@data_options
@target_option
@click.option("--plot", type=OutFile(".png", ".svg", ".pdf"), help="Picture to write: .png, .svg or .pdf.")
@json_option
def curve(
    model: Path,
    budget: float | None,
    data: Path | None,
    sql: str | None,
    database: str | None,
    target: str | None,
    unseen: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Cost and error at every budget, on the labelled rows of DATA.

    Without DATA: the mean cost on validation rows, and the error to expect on new rows.
    """
    from budgetforest.report.curve import cost_error_curve, forest_of
    from budgetforest.report.missing import lacks_of

    loaded = load_model(model, budget)
    if data is None and sql is None:
        if plot is not None:
            raise click.UsageError("--plot needs rows with labels: name DATA")
        title = "expected on new rows; error with its 95% interval"
        lines = [(p.cost, p.cost, p.error, p.low, p.high, forest_of(loaded, p)) for p in loaded.path_]
        _write(title, lines, as_json)
        return
    rows = labelled_rows(open_source(data, sql, database), loaded, target, unseen=unseen)
    measured = cost_error_curve(loaded, rows.table, rows.labels)
    errors = [measured.at(point) for point in measured.budget]
    columns = measured.budget, measured.cost, *zip(*errors, strict=True), measured.what
    title = f"{len(rows.labels)} rows; error with its 95% interval"
    _write(title, list(zip(*columns, strict=True)), as_json)
    tell_lacks(lacks_of(loaded.acquired_features(rows.table), rows.table.matrix), loaded.forest_)
    if plot is not None:
        with written_whole(plot) as beside:
            measured.plot().figure.savefig(beside)
        click.echo(f"wrote {plot}", err=True)


def _write(title: str, lines: list[tuple[Any, ...]], as_json: bool) -> None:
    """Budget, cost, error, its interval and the forest, line by line."""
    if as_json:
        heads = ("budget", "cost", "error", "low", "high", "what")
        write_json([dict(zip(heads, line, strict=True)) for line in lines])
        return
    print_table(
        title,
        ("from budget", "mean cost", "error", "interval", "forest"),
        [
            (f"{b:.4g}", f"{c:.4g}", f"{error:.4f}", f"{low:.4f} to {high:.4f}", what)
            for b, c, error, low, high, what in lines
        ],
        brief=["forest"],
    )
