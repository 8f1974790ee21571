"""``budgetforest report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from budgetforest.cli.inputs import (
    FILE,
    data_options,
    is_pipe,
    labelled_rows,
    load_model,
    model_argument,
    open_source,
    target_option,
)
from budgetforest.cli.output import OutFile, WritingCommand, claim, json_option, write_json, written_whole

if TYPE_CHECKING:
    from budgetforest.files.learning import Labelled


@click.command(cls=WritingCommand)
@model_argument
@data_options
@target_option
@click.option("--out", type=OutFile(".html", ".htm", ""), help="[default: MODEL.html]")
@click.option("--title", help="The heading of the page.")
@click.option(
    "--baseline", type=FILE, help="Training rows: a plain random forest learns from them, to compare with."
)
@click.option("--currency", default="", help="What stands before prices, as EUR.")
@click.option("--row-name", default="row", show_default=True, help="What a row is, as patient.")
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
    title: str | None,
    baseline: Path | None,
    currency: str,
    row_name: str,
    as_json: bool,
) -> None:
    """Write one HTML page about a model, measured on DATA.

    It shows what the model costs, how it errs and what it asks for, on rows with labels.
    """
    from budgetforest.report import report as write

    path = out or claim(Path(model.name).with_suffix(".html"))
    loaded = load_model(model, budget)
    source = open_source(data, sql, database)
    # a plain forest asks for all features
    rows = labelled_rows(source, loaded, target, unseen=unseen, whole=baseline is not None)
    plain = None
    if baseline is not None:
        known = open_source(baseline, None, None)
        plain = _plain_forest(labelled_rows(known, loaded, target, unseen=unseen, whole=True))
    files = {"model file": model.name, "data": source.name if data is None or is_pipe(data) else data.name}
    page = write(
        loaded,
        rows.table,
        rows.labels,
        title=title,
        baseline=plain,
        files=files,
        currency=currency,
        row_name=row_name,
    )
    with written_whole(path) as beside:
        page.save(beside)
    told = page.facts.verdicts[page.facts.chosen]
    if as_json:
        seen = page.facts.seen
        write_json({"report": str(path), "rows": len(rows.labels), "verdict": told, "seen_share": seen})
    else:
        click.echo(f"wrote {path}\n{told}")


def _plain_forest(rows: Labelled) -> Any:
    """A random forest of scikit-learn, which knows no prices; categories are numbers to it."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0, n_jobs=-1).fit(rows.table.matrix, rows.labels)
