"""``budgetforest export``: a forest for other languages and runtimes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from budgetforest.cli.inputs import load_model, model_argument
from budgetforest.cli.output import OutFile, WritingCommand, json_option, write_json, written_whole


def _json(model: Any) -> bytes:
    from budgetforest import to_json

    content: str = to_json(model)
    return content.encode()


def _onnx(model: Any) -> bytes:
    from budgetforest import to_onnx

    content: bytes = to_onnx(model).SerializeToString()
    return content


FORMATS: dict[str, Callable[[Any], bytes]] = {".json": _json, ".onnx": _onnx}
"""What writes a file, by its ending."""


@click.command(cls=WritingCommand)
@model_argument
@click.option("--out", type=OutFile(*FORMATS), required=True, help="File to write, .json or .onnx.")
@json_option
def export(model: Path, budget: float | None, out: Path, as_json: bool) -> None:
    """Write a forest as JSON or ONNX, by the ending of --out.

    JSON is all that the decision of a row needs, prices and exits included. ONNX gives the labels and
    probabilities of rows whose features are all at hand.
    """
    loaded = load_model(model, budget)
    content = FORMATS[out.suffix.lower()](loaded)
    with written_whole(out) as beside:
        beside.write_bytes(content)
    if as_json:
        write_json({"export": str(out), "trees": loaded.n_trees_, "bytes": len(content)})
    else:
        click.echo(f"wrote {out}")
