"""``budgetforest predict``: rows in, answers out, block by block."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from budgetforest.cli.output import OUT, json_option, plain, text_output, written_whole
from budgetforest.cli.sources import data_options, load_model, model_argument, open_source, unseen_option

if TYPE_CHECKING:
    from budgetforest.arrays import Flags, Floats
    from budgetforest.charge import Answers
    from budgetforest.forest import Forest
    from budgetforest.reading.applying import Piece, Reader

Columns = dict[str, Any]
"""Some rows of the output, by column: lists, and arrays of shares."""

SPECIAL = re.compile(r'[",\r\n]')
"""What makes quotes necessary."""


@click.command()
@model_argument
@data_options
@click.option("--out", type=OUT, help="CSV or .parquet file, else stdout.")
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
    from budgetforest.reading.applying import Reader

    loaded = load_model(model, budget)
    source = open_source(data, sql, database)
    reader = Reader(source, loaded.forest_.schema, unseen=unseen)
    if out is not None and out.suffix.lower() == ".parquet" and not as_json:
        with written_whole(out) as beside:
            _write_parquet(_answers(loaded, reader, keep, answer), beside)
        return
    with text_output(out) as file:
        (_write_json if as_json else _write_csv)(_answers(loaded, reader, keep, answer), file)


def _answers(model: Any, reader: Reader, keep: Sequence[str], answer: str | None) -> Iterator[Columns]:
    """The answers for every block of rows."""
    from concurrent.futures import ThreadPoolExecutor

    from budgetforest.charge import answers
    from budgetforest.errors import InvalidData
    from budgetforest.progress import late_progress
    from budgetforest.reading.header import place_of

    kept = {name: place_of(name, reader.source.names, "which should be kept") for name in keep}
    for name in {"label", "cost", "acquired", *(f"proba_{label}" for label in model.forest_.classes)} & set(
        keep
    ):
        raise InvalidData(f"--keep is {name!r}, and so is a column of the answers; rename that of the data")
    with (
        late_progress("predicting", reader.source.size) as tell,
        ThreadPoolExecutor(1, "reading") as background,
        ThreadPoolExecutor(thread_name_prefix="predicting") as pool,
    ):
        for piece in _read_ahead(reader.pieces(), background):
            given = answers(model.forest_, piece.table.matrix, model._answer(answer), pool)
            yield _columns(model.forest_, piece, given, kept)
            tell(piece.block.upto)


def _read_ahead(pieces: Iterator[Piece], background: Any) -> Iterator[Piece]:
    """The same pieces, each read while the one before it is in use."""
    coming = background.submit(next, pieces, None)
    while (piece := coming.result()) is not None:
        coming = background.submit(next, pieces, None)
        yield piece


def _columns(forest: Forest, piece: Piece, given: Answers, kept: dict[str, int]) -> Columns:
    from budgetforest.reading.coding import text_of

    columns: Columns = {
        name: [text_of(raw) for raw in piece.block.raw(place)] for name, place in kept.items()
    }
    columns["label"] = [forest.classes[code] for code in given.label.tolist()]
    columns["cost"] = given.ledger.spent.tolist()
    columns["acquired"] = _lists(given.ledger.acquired, forest.schema.names)
    shares = zip(forest.classes, given.share.round(6).T, strict=True)
    return columns | {f"proba_{label}": share for label, share in shares}


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


def _write_csv(answers: Iterator[Columns], file: IO[str]) -> None:
    for number, columns in enumerate(answers):
        if number == 0:
            file.write(",".join(map(_quoted, columns)) + "\n")
        shown = [_shown(name, values) for name, values in columns.items()]
        file.write("\n".join(map(",".join, zip(*shown, strict=True))) + "\n")


def _shown(name: str, values: Any) -> list[str]:
    """A column as it is written: shares with six digits, costs as short as they are, lists joined."""
    if hasattr(values, "tolist"):
        return _six_digits(values)
    if isinstance(values[0], list):
        distinct = {id(names): names for names in values}
        joined = {key: _quoted(";".join(names)) for key, names in distinct.items()}
        return [joined[id(names)] for names in values]
    if name == "cost":
        costs = {value: f"{value:.12g}" for value in set(values)}
        return [costs[value] for value in values]
    return [_quoted(str(value)) for value in values]


def _six_digits(shares: Floats) -> list[str]:
    """Numbers from 0 to 1 as texts, all at once: one by one they would take most of the time of writing."""
    import numpy as np

    rest = np.rint(shares * 1e6).astype(np.int32)
    signs = np.full((len(rest), 8), ord("."), np.uint8)
    for place in (7, 6, 5, 4, 3, 2, 0):
        tens = rest // 10
        signs[:, place] = rest - 10 * tens + ord("0")
        rest = tens
    text = signs.tobytes().decode("ascii")
    return [text[at : at + 8] for at in range(0, len(text), 8)]


def _quoted(text: str) -> str:
    """A cell of a CSV."""
    return '"' + text.replace('"', '""') + '"' if SPECIAL.search(text) else text


def _write_json(answers: Iterator[Columns], file: IO[str]) -> None:
    """A JSON document per line and row."""
    for columns in answers:
        for row in zip(*columns.values(), strict=True):
            file.write(json.dumps(plain(dict(zip(columns, row, strict=True))), ensure_ascii=False) + "\n")


def _write_parquet(answers: Iterator[Columns], path: Path) -> None:
    import_table, parquet = _arrow()
    writer = None
    try:
        for columns in answers:
            table = import_table(dict(columns))
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _arrow() -> tuple[Callable[..., Any], Any]:
    from budgetforest.errors import MissingExtra

    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra('Parquet files need pyarrow: pip install "budgetforest[data]"') from None
    return pa.table, parquet
