"""What commands write: tables for people, JSON for programs, files that are whole or absent."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

import click

from budgetforest.runtime.atomic import replacing

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """``--json`` of every command."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")(command)


def write_json(document: Any) -> None:
    """A document on stdout, in one line."""
    click.echo(json.dumps(plain(document), ensure_ascii=False))


def plain(value: Any) -> Any:
    """A value as JSON has it: numpy's numbers as Python's, what is not finite as null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def print_by_class(classes: Sequence[dict[str, Any]]) -> None:
    """Recall and precision of every class, if they are known."""
    if classes:
        print_table(
            "classes, on the validation rows",
            ("class", "rows", "recall", "precision"),
            [
                (str(each["label"]), str(each["rows"]), _share(each["recall"]), _share(each["precision"]))
                for each in classes
            ],
        )


def _share(value: float) -> str:
    return "" if value != value else f"{value:.1%}"


def print_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], brief: Sequence[str] = ()
) -> None:
    """A table on stdout; numbers to the right.

    In a terminal cells too long for it are wrapped, or cut if their column is ``brief``.
    In a pipe the table is plain text, columns two spaces apart.
    """
    right = [all(not row[place] or _is_number(row[place]) for row in rows) for place in range(len(heads))]
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        click.echo(f"\n{title}")
        for row in (heads, *rows):
            cells = zip(row, widths, right, strict=True)
            click.echo("  ".join(f"{cell:{'>' if r else '<'}{width}}" for cell, width, r in cells).rstrip())
        return

    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, head in enumerate(heads):
        table.add_column(
            head,
            justify="right" if right[place] else "left",
            no_wrap=head in brief,
            overflow="ellipsis" if head in brief else "fold",
        )
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False, emoji=False).print(table)


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True


class WritingCommand(click.Command):
    """A command that writes files: it replaces none unasked, and never one that it reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["--force"],
                is_flag=True,
                expose_value=False,
                callback=_note_force,
                help="Replace files that exist.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, if its files may be written."""
        for param in self.params:
            if isinstance(param.type, OutFile) and (path := ctx.params[str(param.name)]) is not None:
                claim(path, ctx)
        return super().invoke(ctx)


FORCE = "budgetforest.force"


def _note_force(ctx: click.Context, param: click.Parameter, replaces: bool) -> None:
    ctx.meta[FORCE] = replaces


def claim(path: Path, ctx: click.Context | None = None) -> Path:
    """The path of a file to write, if nobody's work is lost by it."""
    ctx = ctx or click.get_current_context()
    if not path.is_file():
        return path
    for param in ctx.command.params:
        read = ctx.params.get(str(param.name))
        if isinstance(read, Path) and not isinstance(param.type, OutFile) and _is_same(read, path):
            raise click.UsageError(f"{str(path)!r} is read by this command; write to another file.", ctx)
    if not ctx.meta[FORCE]:
        raise click.UsageError(f"{str(path)!r} exists; pass --force to replace it.", ctx)
    return path


def _is_same(read: Path, written: Path) -> bool:
    return read.is_file() and read.samefile(written)


class OutFile(click.Path):
    """A file to write, in a folder that can be written: found out before the work, not after it.

    With ``endings`` its name has one of them; "" is none.
    """

    def __init__(self, *endings: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path of the file."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if self.endings and (wrong := wrong_ending(path, self.endings)):
            self.fail(wrong, param, ctx)
        if not os.access(path.absolute().parent, os.W_OK):
            self.fail(f"{str(path)!r} cannot be written: make the folder {str(path.parent)!r}", param, ctx)
        return path


def wrong_ending(path: Path, endings: Sequence[str]) -> str | None:
    """What is wrong with a name that promises another format than the file will have."""
    if path.suffix.lower() in endings:
        return None
    rule = f"must end in {' or '.join(filter(None, endings))}"
    return f"{str(path)!r} {rule}{', or have no ending' if '' in endings else ''}."


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file to fill that appears when it is complete; a device or a pipe is filled as it is."""
    if path.exists() and not path.is_file():
        yield path
        return
    with replacing(path) as beside:
        yield beside


@contextmanager
def text_output(path: Path | None) -> Iterator[TextIO]:
    """A text file that appears when it is complete, or stdout."""
    if path is None:
        yield sys.stdout
        return
    with written_whole(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        yield file


def write_all(file: BinaryIO, content: bytes) -> None:
    """Write to a file that may take a part at a time, as stdout does where PYTHONUNBUFFERED is set."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
