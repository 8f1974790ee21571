"""``budgetforest curve``."""

from __future__ import annotations

from pathlib import Path

import click

from budgetforest.cli.inputs import (
    data_options,
    labelled_rows,
    load_model,
    model_argument,
    open_source,
    target_option,
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
    """Cost and error at every budget, on the labelled rows of DATA."""
    from budgetforest import cost_error_curve

    loaded = load_model(model, budget)
    rows = labelled_rows(open_source(data, sql, database), loaded, target, unseen=unseen)
    measured = cost_error_curve(loaded, rows.table, rows.labels)
    errors = [measured.at(point) for point in measured.budget]
    if as_json:
        heads = ("budget", "cost", "error", "low", "high", "what")
        values = zip(measured.budget, measured.cost, *zip(*errors, strict=True), measured.what, strict=True)
        write_json([dict(zip(heads, row, strict=True)) for row in values])
    else:
        print_table(
            f"{len(rows.labels)} rows; error with its 95% interval",
            ("from budget", "mean cost", "error", "interval", "forest"),
            [
                (f"{b:.4g}", f"{c:.4g}", f"{e.mean:.4f}", f"{e.low:.4f} to {e.high:.4f}", what)
                for b, c, e, what in zip(measured.budget, measured.cost, errors, measured.what, strict=True)
            ],
            brief=["forest"],
        )
    if plot is not None:
        with written_whole(plot) as beside:
            measured.plot().figure.savefig(beside)
        click.echo(f"wrote {plot}", err=True)
