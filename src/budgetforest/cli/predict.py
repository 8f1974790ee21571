"""``budgetforest predict``: rows in, answers out, block by block."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from budgetforest.cli.inputs import (
    data_options,
    load_model,
    model_argument,
    open_source,
    tell_lacks,
    unseen_option,
)
from budgetforest.cli.output import (
    OutFile,
    WritingCommand,
    json_option,
    plain,
    text_output,
    write_all,
    written_whole,
    wrong_ending,
)

if TYPE_CHECKING:
    from budgetforest.files.applying import Reader
    from budgetforest.files.source import Block, Source
    from budgetforest.inference.predict import Answers
    from budgetforest.report.missing import Lacks
    from budgetforest.runtime.arrays import Flags
    from budgetforest.trees.forest import Forest

Columns = dict[str, Any]
"""Some rows of the output, by column: lists, and arrays of shares."""

Kept = dict[str, list[str]]
"""Columns of the input that are copied."""

Item = TypeVar("Item")
Result = TypeVar("Result")

ANSWERS = ("label", "cost", "acquired")
"""What is written of every row, before its shares."""

CSV, JSON = (".csv", ".txt", ".parquet", ""), (".jsonl", ".ndjson", ".json", ".txt", "")
"""Endings of the file without and with ``--json``."""

THREADS = 8
"""Blocks in work at a time, at most: memory stays bounded on large machines."""


@click.command(cls=WritingCommand)
@model_argument
@data_options
@click.option(
    "--out", type=OutFile(), help="File to write, .csv or .parquet, with --json .jsonl; else stdout."
)
@click.option(
    "--keep", multiple=True, metavar="COL", help="A column of DATA to copy, as an id; may be repeated."
)
@click.option("--answer", type=click.Choice(["label", "proba"]), help="What rows pay for, if not as trained.")
@unseen_option
@json_option
def predict(
    model: Path,
    budget: float | None,
    data: Path | None,
    sql: str | None,
    database: str | None,
    out: Path | None,
    keep: tuple[str, ...],
    answer: str | None,
    unseen: bool,
    as_json: bool,
) -> None:
    """Label every row of DATA, and say what it paid for.

    Writes one line for each row, in order: label, cost, acquired (features joined by ;), and a column
    proba_CLASS for each class: what the trees believe by what was paid for, or with --answer proba
    the shares of all votes. Files may be larger than memory.
    """
    from budgetforest.files.applying import Reader

    if out is not None and (wrong := wrong_ending(out, JSON if as_json else CSV)):
        raise click.BadParameter(wrong, param_hint="--out")
    loaded = load_model(model, budget)
    forest = loaded.forest_
    source = open_source(data, sql, database)
    kept = _kept_columns(keep, source, forest)
    asked = loaded.used_features(answer=answer)
    reader = Reader(source, forest.schema, asked=asked, unseen=unseen, texts=list(kept.values()))
    if out is not None and out.suffix.lower() == ".parquet":
        with written_whole(out) as beside:
            _write_parquet(forest, kept, _answers(loaded, reader, kept, answer, _columns), beside)
    else:
        _write_lines(loaded, reader, kept, answer, out, as_json=as_json)
    if out is not None and not as_json:
        click.echo(f"wrote {out}", err=True)


def _write_lines(
    model: Any, reader: Reader, kept: dict[str, int], answer: str | None, out: Path | None, *, as_json: bool
) -> None:
    """A line for every row, of CSV after its header or of JSON."""
    from budgetforest.cli.csv_answers import csv_header, csv_lines

    shape: Callable[[Forest, Kept, Answers], bytes] = _json_lines if as_json else csv_lines
    with text_output(out) as file:
        if not as_json:
            write_all(file.buffer, csv_header([*kept, *ANSWERS, *_share_names(model.forest_)]))
        for lines in _answers(model, reader, kept, answer, shape):
            write_all(file.buffer, lines)


def _answers(
    model: Any,
    reader: Reader,
    kept: dict[str, int],
    answer: str | None,
    shape: Callable[[Forest, Kept, Answers], Result],
) -> Iterator[Result]:
    """The answers for every block of rows, in a certain shape; some blocks are in work at the same time."""
    from budgetforest.inference.predict import answerer
    from budgetforest.report.missing import lacks_of
    from budgetforest.runtime.progress import late_progress

    forest = model.forest_
    answers_for = answerer(forest, model._answer(answer))

    def work(block: Block) -> tuple[Result, int, Lacks]:
        rows = reader.matrix(block)
        given = answers_for(rows, None)
        copied = {name: [text or "" for text in block.texts[place]] for name, place in kept.items()}
        return shape(forest, copied, given), block.upto, lacks_of(given.ledger.acquired, rows)

    threads, lacks = min(os.cpu_count() or 1, THREADS), None
    with late_progress("predicting", reader.source.size) as tell, ThreadPoolExecutor(threads) as pool:
        for shaped, upto, here in _in_order(pool, work, reader.blocks(), threads + 1):
            lacks = lacks.plus(here) if lacks else here
            yield shaped
            tell(upto)
    tell_lacks(lacks, forest)


def _in_order(
    pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """The results for all items, of which so many are in work; an error comes after what precedes it."""

    def started() -> Iterator[Future[Result]]:
        try:
            for item in items:
                yield pool.submit(work, item)
        except Exception as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            yield failed

    results: deque[Future[Result]] = deque()
    for future in started():
        results.append(future)
        if len(results) > ahead:
            yield results.popleft().result()
    while results:
        yield results.popleft().result()


def _kept_columns(keep: Sequence[str], source: Source, forest: Forest) -> dict[str, int]:
    """Where the columns stand that are copied."""
    from budgetforest.files.header import place_of
    from budgetforest.runtime.errors import InvalidData

    for name in {*ANSWERS, *_share_names(forest)} & set(keep):
        raise InvalidData(f"--keep is {name!r}, and so is a column of the answers; rename that of the data")
    return {name: place_of(name, source.names, "which should be kept", source.name) for name in keep}


def _share_names(forest: Forest) -> list[str]:
    return [f"proba_{label}" for label in forest.classes]


def _columns(forest: Forest, kept: Kept, given: Answers) -> Columns:
    columns: Columns = dict(kept)
    columns["label"] = [forest.classes[code] for code in given.label.tolist()]
    columns["cost"] = given.ledger.spent.tolist()
    columns["acquired"] = _lists(given.ledger.acquired, forest.schema.names)
    shares = given.share.round(6).T
    return columns | dict(zip(_share_names(forest), shares, strict=True))


def _lists(acquired: Flags, names: Sequence[str]) -> list[list[str]]:
    """The names of the features that each row paid for; rows that paid for the same share a list."""
    import numpy as np

    packed = np.packbits(acquired, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    lists = {}
    for key in set(keys):
        flags = np.unpackbits(np.frombuffer(key, np.uint8), count=len(names))
        lists[key] = [names[j] for j in np.flatnonzero(flags).tolist()]
    return [lists[key] for key in keys]


def _json_lines(forest: Forest, kept: Kept, given: Answers) -> bytes:
    """A JSON document per line and row."""
    columns = _columns(forest, kept, given)
    rows = zip(*columns.values(), strict=True)
    documents = [plain(dict(zip(columns, row, strict=True))) for row in rows]
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents).encode()


def _write_parquet(forest: Forest, keep: Iterable[str], answers: Iterator[Columns], path: Path) -> None:
    """A file of known columns, so that one without rows is complete, too."""
    from budgetforest.runtime.errors import MissingExtra

    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra('Parquet files need pyarrow: pip install "budgetforest[data]"') from None
    schema = pa.schema(
        {
            **dict.fromkeys(keep, pa.string()),
            "label": pa.array(list(forest.classes)).type,
            "cost": pa.float64(),
            "acquired": pa.list_(pa.string()),
            **dict.fromkeys(_share_names(forest), pa.float64()),
        }
    )
    with parquet.ParquetWriter(path, schema) as writer:
        for columns in answers:
            writer.write_table(pa.table(columns, schema))
