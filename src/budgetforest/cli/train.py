"""``budgetforest train``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from budgetforest.cli.inputs import (
    BUDGET,
    FILE,
    Amount,
    data_options,
    is_pipe,
    learning_options,
    open_source,
    prices_of,
    prices_option,
    tell_unlabelled,
)
from budgetforest.cli.output import OutFile, WritingCommand, claim, json_option, print_by_class, write_json

SENTENCE = ("verdict", "by_class", "expected_error", "error_interval")
"""What a sentence and a table tell at the end."""


def _some_threads(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter("0 threads do no work; take -1 for all cores.")
    return value


@click.command(cls=WritingCommand)
@data_options
@learning_options
@prices_option
@click.option("--budget", type=BUDGET, help="Allowed mean cost of a row; without it, no limit.")
@click.option(
    "--validation", type=FILE, help="Rows that measure cost and error, else 30% of DATA are held out."
)
@click.option("--out", type=OutFile(".safetensors", ""), help="[default: DATA.safetensors]")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep what is done here; after a kill the same command goes on from there, to the same forest.",
)
@click.option("--method", type=click.Choice(["auto", "paper"]), default="auto", show_default=True)
@click.option("--answer", type=click.Choice(["label", "proba"]), default="label", show_default=True)
@click.option(
    "--max-disagreement",
    type=Amount(0, 1, max_open=True),
    help="How often a label may differ from the full forest's; else as is best at the budget.",
)
@click.option(
    "--confidence",
    type=Amount(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure that must be.",
)
@click.option(
    "--refit/--no-refit",
    default=True,
    show_default=True,
    help="Whether the chosen forests are grown again on validation rows, too.",
)
@click.option(
    "--max-trees",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Trees of a forest; one that is boosted may have up to five times as many rounds.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option(
    "--jobs",
    type=int,
    default=-1,
    show_default=True,
    callback=_some_threads,
    help="Threads; -1 is all cores.",
)
@json_option
def train(
    data: Path | None,
    sql: str | None,
    database: str | None,
    target: str,
    prices: Path | None,
    budget: float | None,
    validation: Path | None,
    out: Path | None,
    checkpoint: Path | None,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    missing: tuple[str, ...],
    method: str,
    answer: str,
    max_disagreement: float | None,
    confidence: float,
    refit: bool,
    max_trees: int,
    seed: int,
    jobs: int,
    as_json: bool,
) -> None:
    """Train a forest within a budget and write it to a model file."""
    from budgetforest import BudgetForestClassifier, save
    from budgetforest.files.applying import labelled_rows
    from budgetforest.files.learning import Wish, learn_rows
    from budgetforest.runtime.progress import late_progress

    if out is None and (data is None or is_pipe(data)):
        raise click.UsageError("DATA is no file, so name that of the model with --out")
    path = out or claim(Path(data.name).with_suffix(".safetensors"))  # type: ignore[union-attr]
    source = open_source(data, sql, database, again=True)
    with late_progress("reading", source.size) as tell:
        rows = learn_rows(source, Wish(target, drop, categorical, missing), tell)
    tell_unlabelled(rows.unlabelled, target)
    model = BudgetForestClassifier(
        budget,
        costs=prices_of(prices, rows.table.schema.names),
        method=method,
        answer=answer,
        max_disagreement=max_disagreement,
        confidence=confidence,
        refit=refit,
        max_trees=max_trees,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    held = None
    if validation is not None:
        classes = sorted(set(rows.labels.tolist()))
        held = labelled_rows(open_source(validation, None, None), rows.table.schema, target, classes)[:2]
    model.fit(rows.table, rows.labels, validation=held, checkpoint=checkpoint)
    save(model, path)
    summary = _summary(model, len(rows.labels), path)
    if as_json:
        write_json(summary)
        return
    for name, value in summary.items():
        if name not in SENTENCE:
            click.echo(f"{name.replace('_', ' '):<17} {_shown(value)}")
    click.echo(f"\n{summary['verdict']}")
    print_by_class(summary["by_class"])


def _summary(model: Any, rows: int, path: Path) -> dict[str, Any]:
    """What was trained, in a few lines."""
    told = model.summary()
    verdict = told.verdict
    return {
        "model": str(path),
        "rows": rows,
        "features": len(model.forest_.schema.names),
        "classes": list(model.forest_.classes),
        "trees": model.n_trees_,
        "mean_cost": told.cost,
        "cost_of_all": told.cost_of_all,
        "expected_error": verdict and verdict.error,
        "error_interval": verdict and [verdict.low, verdict.high],
        "smaller_budgets": len(model.path_),
        "verdict": told.sentence,
        "by_class": [each._asdict() for each in told.classes],
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value[:8])) + (", ..." if len(value) > 8 else "")
    return f"{value:.4g}" if isinstance(value, float) else str(value)
