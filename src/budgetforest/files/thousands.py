"""Numbers as 1.200 beside 950: some take them for 1200, others for 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from budgetforest.data.costs import OTHER, both_readings, like_thousands
from budgetforest.files.source import Source, Wanted
from budgetforest.runtime.errors import InvalidData

FIRST_ROWS = 4096
"""Rows that show the decimals of most columns, before all are looked at."""
SIGNED = "case when contains({cell}, '{sign}') then "  # unlike `and`, it spares most cells the pattern
CLEAR = f"bool_or({SIGNED}not regexp_full_match(trim({{cell}}), '{{like}}') end)"
"""Whether a column has numbers that are decimals to everybody, as 0.125 and 7.27."""
UNCLEAR = f"min({SIGNED}case when regexp_full_match(trim({{cell}}), '{{like}}') then {{cell}} end end)"
"""A number that is thousands to some."""
WHOLE = "bool_or(regexp_full_match(trim({cell}), '[-+]?[0-9]+'))"
"""Whether it has whole numbers."""

GROUPED = re.compile(r"\s*[-+]?[1-9][0-9]{0,2}([.,])[0-9]{3}(\1[0-9]{3})*([.,][0-9]*)?\s*")
"""A number that is read as none, though a sign may part its thousands."""

Place = tuple[int, str]
"""A column, and a sign in its numbers."""


class Doubts:
    """In which columns which signs may part thousands, as far as a source was read.

    Numbers as 7.27 show that their sign is a decimal one, to later parts of the source, too.
    """

    def __init__(self, columns: Sequence[int]) -> None:
        self._open = list(product(columns, OTHER))

    def about(self, part: Source) -> Iterator[tuple[int, str]]:
        """The columns that can be read in two ways, and what to say of them.

        Only in files whose delimiter is no comma: elsewhere a point is a decimal sign.
        """
        if not part.decimal_comma or part.decimal:
            return
        cells: dict[Place, object] = {}
        for limit in (f" limit {FIRST_ROWS}", ""):
            found = zip(self._open, _asked(part, self._open, (CLEAR, UNCLEAR), limit), strict=True)
            cells = {place: cell for place, (is_clear, cell) in found if not is_clear}
            self._open = list(cells)
        unclear = [place for place, cell in cells.items() if cell is not None]
        for place, [beside] in zip(unclear, _asked(part, unclear, (WHOLE,)), strict=True):
            if beside:
                yield place[0], _message(part, *place, cells[place])


def _asked(
    part: Source, places: Sequence[Place], questions: Sequence[str], limit: str = ""
) -> Iterator[tuple[object, ...]]:
    """For each of some columns the answers to some questions."""
    if not places:
        return iter(())
    what = [
        question.format(cell=f"n{j}", sign=sign, like=like_thousands(sign))
        for j, sign in places
        for question in questions
    ]
    with part.opened(Wanted((), tuple(j for j, _ in places), ())) as rows:
        query = f"select {', '.join(what)} from (select * from ({rows.query}\n){limit})"
        [answers] = rows.connection.sql(query).fetchall()
    return iter(answers[at : at + len(questions)] for at in range(0, len(answers), len(questions)))


def sign_of(cell: str) -> str:
    """The sign that parts the thousands of such a number."""
    return re.sub("[^.,]", "", cell)[0]


def about_groups(part: Source, column: int, cell: str) -> str:
    """What to say of such a number beside plain ones."""
    sign = sign_of(cell)
    if re.fullmatch(like_thousands(sign), cell.strip()):
        return _message(part, column, sign, cell)
    name, value = part.names[column], cell.strip().replace(sign, "").replace(OTHER[sign], ".")
    return (
        f"column {name!r} of {part.name} has {cell!r} beside plain numbers: is that {value}? Say so with "
        f"--thousands {sign!r}, or that these are names with --categorical {name!r}"
    )


def _message(part: Source, column: int, sign: str, cell: object) -> str:
    thousands, decimals = both_readings(str(cell).strip(), sign)
    return (
        f"column {part.names[column]!r} of {part.name} has {cell!r} beside whole numbers: is that "
        f"{thousands} or {decimals}? Say so with --decimal {OTHER[sign]!r} or --decimal {sign!r}"
    )


def refuse_thousands(part: Source, doubts: Doubts) -> None:
    """Refuse rows that a model is applied to if their numbers can be read in two ways.

    What else is wrong in them is said by those who read them, with its line.
    """
    import duckdb

    try:
        for _, message in doubts.about(part):
            raise InvalidData(message)
    except duckdb.Error:
        return
