"""What features cost: prices, groups, discounts.

A group is bought together. Its first member acquired for a row pays its ``cost``, every later one its
``discount``: 0 for a *sensor* (one price for all its columns), the published reduced price for a
*panel* (one blood draw, several tests), where a member without one always pays its ``cost``. A feature alone
in its group never uses its discount.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Anything, Counts, Flags, Floats, Ids
from budgetforest.runtime.errors import InvalidCosts, alike, near

PRICE_COLUMNS = ("feature", "cost", "group", "discount_cost")
"""What a price list may say of a feature; other columns are not read."""
LEAST_COST, LARGEST_COST = 1e-100, 1e100
"""Of a feature that is not free: sums, ratios and squares of such prices are finite, and none is zero."""
DELIMITERS = ",;\t|"
"""What may stand between the cells of a price list; only where it is no comma may a comma be in a number."""


class Prices(NamedTuple):
    """Prices without names, as kernels and loops over single rows take them; see ``Costs``."""

    cost: Any
    discount: Any
    group: Any


def price(prices: Prices | Costs, feature: Any, opened: bool) -> Any:
    """What a row pays for a feature: its discount if its group was opened before, else its cost.

    This is the one place that says so: ``price_kernel`` compiles it.
    """
    return prices.discount[feature] if opened else prices.cost[feature]


class Costs(NamedTuple):
    """Prices of m features."""

    cost: Floats
    """(m) price of a feature when it is the first of its group."""
    discount: Floats
    """(m) price of a feature when its group was opened before."""
    group: Ids
    """(m) group number, 0 to ``len(group_names) - 1``; a feature without a group is its own."""
    group_names: tuple[str, ...]
    """Names of the groups; a feature without a group lends its own name."""

    @property
    def bare(self) -> Prices:
        """The same without names."""
        return Prices(self.cost, self.discount, self.group)

    @property
    def shared(self) -> Flags:
        """(m) which features have others in their group."""
        return np.bincount(self.group)[self.group] > 1

    @property
    def order_matters(self) -> bool:
        """Whether some group costs more or less depending on which member comes first."""
        opening = self.cost - self.discount
        first = np.full(len(self.group_names), np.nan)
        first[self.group[::-1]] = opening[::-1]
        rounding = 4 * np.spacing(self.cost)
        return bool((self.shared & (np.abs(opening - first[self.group]) > rounding)).any())

    @property
    def total(self) -> float:
        """The price of everything, acquired in column order."""
        return float(self.prices(np.ones(len(self.cost), bool)).sum())

    @property
    def most(self) -> float:
        """The most that a row can pay for everything: in every group the dearest order."""
        opening: Floats = np.zeros(len(self.group_names))
        np.maximum.at(opening, self.group, self.cost - self.discount)
        return float(self.discount.sum() + opening.sum())

    def prices(self, features: Flags) -> Floats:
        """(groups) the price of some features, acquired in column order, by group."""
        members = np.flatnonzero(features)
        found: Floats = np.zeros(len(self.group_names))
        np.add.at(found, self.group[members], self.discount[members])
        opened, first = np.unique(self.group[members], return_index=True)
        found[opened] += (self.cost - self.discount)[members[first]]
        return found

    @property
    def bundle(self) -> Counts:
        """(m) a number for what one price buys: the columns of a sensor have the same."""
        together = self.shared & (self.discount == 0)
        columns = np.arange(len(self.group))
        first = np.empty(len(self.group_names), np.int64)
        first[self.group[together][::-1]] = columns[together][::-1]
        return np.unique(np.where(together, first[self.group], columns), return_inverse=True)[1]

    @property
    def least(self) -> Floats:
        """(m) the least that a feature can cost a row."""
        return np.where(self.shared, np.minimum(self.cost, self.discount), self.cost)


OTHER = {".": ",", ",": "."}
"""The sign that parts thousands, by the decimal one, and the other way round."""


class _Price(NamedTuple):
    cost: float
    group: str | None = None
    discount: float | None = None
    where: str = ""
    """Where it was read, as the beginning of a message: ``costs.csv, line 3: ``."""


class _Record(NamedTuple):
    cells: Mapping[str, Any]
    """By column."""
    where: str = ""
    comma: bool = False
    """Whether numbers may have a decimal comma."""


def read_costs(costs: Anything, groups: Anything, names: Sequence[str], decimal: str | None = None) -> Costs:
    """Prices in the order of ``names`` from whatever the caller has.

    ``costs``: None (1 each), an array or list in column order, a mapping or Series by feature name, a
    dataframe or the path of a CSV with columns ``feature,cost[,group][,discount_cost]``.
    ``groups``: None, a list in column order, or a mapping by feature name; None, NaN or "" = alone.
    The ``costs_`` of another model are taken as they are.
    ``decimal``: the decimal sign of a CSV, if somebody says so; the other one then parts thousands.

    >>> read_costs({"age": 1, "mri": 300}, None, ["mri", "age"]).cost.tolist()
    [300.0, 1.0]
    """
    if isinstance(costs, Costs):
        if len(costs.cost) != len(names) or groups is not None:
            raise InvalidCosts(
                f"costs of a model with {len(costs.cost)} features, groups included, cannot serve "
                f"{len(names)} features with groups={groups!r}; give a price list instead"
            )
        return _checked(costs, names)
    prices = _prices(costs, names, decimal)
    if groups is not None:
        labels = _by_name(groups, names, "groups", complete=False)
        prices = {n: p._replace(group=_label(labels.get(n))) for n, p in prices.items()}
    return _assemble([prices[name] for name in names], names)


def _prices(costs: Anything, names: Sequence[str], decimal: str | None) -> dict[str, _Price]:
    if costs is None:
        return {name: _Price(1.0) for name in names}
    if isinstance(costs, str | os.PathLike):
        path = Path(costs)
        return _from_records(*_read_csv(path, decimal), names, f"{path}: ")
    import narwhals as nw

    frame = nw.from_native(costs, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_records(frame.columns, map(_Record, frame.rows(named=True)), names)
    by_name = _by_name(costs, names, "costs", complete=True)
    return {name: _Price(_number(by_name[name], "cost", name)) for name in names}


def delimiter_of(line: str) -> str:
    """What separates the cells of a line: the most frequent delimiter outside quotes."""
    return max(DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)


def _read_csv(path: Path, decimal: str | None = None) -> tuple[Sequence[str], list[_Record]]:
    """The columns and lines of a price list; lines without a word and spaces around cells are passed over."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidCosts(f"cannot read the price list {str(path)!r}: it is not UTF-8; save it so") from None
    except OSError as error:
        raise InvalidCosts(f"cannot read the price list {str(path)!r}: {error}") from error
    delimiter = delimiter_of(next(filter(str.strip, text.splitlines()), ""))
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        lines = [
            (reader.line_num, [cell.strip() for cell in line]) for line in reader if any(map(str.strip, line))
        ]
    except csv.Error as error:
        raise InvalidCosts(
            f"{path}, line {reader.line_num}: {error}; write a quote in a cell twice"
        ) from None
    (_, columns), *rows = lines or [(1, [])]
    if decimal:
        _join_thousands(columns, rows, OTHER[decimal])
    else:
        _refuse_thousands(path, columns, rows)
    return columns, [_record(f"{path}, line {number}: ", columns, row, delimiter) for number, row in rows]


def like_thousands(sign: str) -> str:
    """The pattern of a number that is 1200 to some readers and 1.2 to others, written with a sign.

    >>> bool(re.fullmatch(like_thousands("."), "1.200")), bool(re.fullmatch(like_thousands("."), "0.125"))
    (True, False)
    """
    return f"[-+]?[1-9][0-9]{{0,2}}[{sign}][0-9]{{3}}"


def both_readings(cell: str, sign: str) -> tuple[str, str]:
    """Such a number, taken for thousands and for decimals.

    >>> both_readings("1.200", ".")
    ('1200', '1.2')
    """
    return cell.replace(sign, ""), f"{float(cell.replace(sign, '.')):g}"


def _refuse_thousands(path: Path, columns: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Refuse numbers as 1.200 beside 950, unless others as 7.27 show that their sign is a decimal one."""
    priced = [at for at, column in enumerate(columns) if column in ("cost", "discount_cost")]
    cells = [(line, row[at]) for line, row in rows for at in priced if at < len(row) and row[at]]
    for sign in ".,":
        written = [(line, cell) for line, cell in cells if sign in cell]
        unclear = [(line, cell) for line, cell in written if re.fullmatch(like_thousands(sign), cell)]
        # all alike are decimals of one width; 0.125 and 7.27 are none but decimals
        if unclear and len(unclear) == len(written) < len(cells):
            line, cell = unclear[0]
            whole, part = both_readings(cell, sign)
            raise InvalidCosts(
                f"{path}, line {line}: {cell!r} may be {whole} or {part}, beside numbers without {sign!r}; "
                f"write {whole}, or {part}"
            )


def _join_thousands(columns: Sequence[str], rows: Sequence[tuple[int, list[str]]], sign: str) -> None:
    """Take a sign out of all prices whose thousands it can part; others, as 7.27, are what they seem."""
    grouped = re.compile(rf"[1-9][0-9]{{0,2}}([{sign}][0-9]{{3}})+([{OTHER[sign]}][0-9]*)?")
    for at in [at for at, column in enumerate(columns) if column in ("cost", "discount_cost")]:
        for _, row in rows:
            if at < len(row) and grouped.fullmatch(row[at]):
                row[at] = row[at].replace(sign, "")


def _record(where: str, columns: Sequence[str], row: Sequence[str], delimiter: str) -> _Record:
    """A line by column; last cells that are absent are empty."""
    if len(row) > len(columns):
        raise InvalidCosts(
            f"{where}it has {len(row)} cells, the header {len(columns)} columns; quote cells that contain "
            f"{delimiter!r}" + ", and write numbers with a decimal point" * (delimiter == ",")
        )
    cells = dict(itertools.zip_longest(columns, row, fillvalue=""))
    return _Record(cells, where, comma=delimiter != ",")


def _from_records(
    columns: Sequence[str], records: Iterable[_Record], names: Sequence[str], where: str = ""
) -> dict[str, _Price]:
    for column in columns:
        likely = alike(column, PRICE_COLUMNS, 0.7)
        if likely and column not in PRICE_COLUMNS:
            raise InvalidCosts(f"{where}the price list has a column {column!r}; did you mean {likely[0]!r}?")
    for column in ("cost", "feature"):
        if column not in columns:
            raise InvalidCosts(
                f"{where}the price list has no column {column!r}; it needs 'feature,cost' and may have "
                f"'group,discount_cost', and has {list(columns)}"
            )
    prices: dict[str, _Price] = {}
    known = set(names)
    for record in records:
        name = unguarded(str(record.cells["feature"]), known)
        try:
            if name not in known:
                raise _unknown(name, names, "costs")
            if name in prices:
                raise InvalidCosts(f"feature {name!r} is listed twice in the price list; list it once")
            prices[name] = _price(record, name)
        except InvalidCosts as error:
            raise InvalidCosts(f"{record.where}{error}") from None
    _check_complete(prices, names, f"{where}costs")
    return prices


def unmatched(path: Path, names: Sequence[str], decimal: str | None = None) -> tuple[list[str], list[str]]:
    """Features without a price in a list, and prices in it without a feature; none if it names none."""
    columns, records = _read_csv(path, decimal)
    if "feature" not in columns:
        return [], []
    known = set(names)
    listed = [unguarded(str(record.cells["feature"]), known) for record in records]
    priced = set(listed)
    return [name for name in names if name not in priced], [name for name in listed if name not in known]


def unguarded(name: str, known: Container[str]) -> str:
    """A name as it was before ``cli.cells`` guarded it from spreadsheets."""
    return name[1:] if name[:1] == "'" and name not in known and name[1:] in known else name


def _price(record: _Record, name: str) -> _Price:
    def number(column: str) -> float:
        return _number(record.cells[column], column, name, comma=record.comma)

    cost = number("cost")
    discount = None if _label(record.cells.get("discount_cost")) is None else number("discount_cost")
    if discount is not None and discount > cost:
        raise InvalidCosts(
            f"discount_cost of {name!r} is {discount}, more than its cost {cost}; a later member of a group "
            "costs at most as much as the first"
        )
    return _Price(cost, _label(record.cells.get("group")), discount, record.where)


def _by_name(given: Anything, names: Sequence[str], what: str, *, complete: bool) -> dict[str, Any]:
    """A mapping, Series or list in column order as a mapping by name."""
    if isinstance(given, Mapping) or (hasattr(given, "index") and hasattr(given, "items")):
        mapping: dict[str, Any] = {}
        for name, value in given.items():
            if str(name) in mapping:
                raise InvalidCosts(f"feature {str(name)!r} is listed twice in {what}; list it once")
            mapping[str(name)] = value
        positions = {str(i) for i in range(len(names))}
        if set(mapping) == positions and not positions & set(names):
            return dict(zip(names, (mapping[str(i)] for i in range(len(names))), strict=True))
        known = set(names)
        for name in mapping:
            if name not in known:
                raise _unknown(name, names, what)
        if complete:
            _check_complete(mapping, names, what)
        return mapping
    listed = np.ndim(given) == 1 if hasattr(given, "ndim") else isinstance(given, Iterable)
    values = list(given) if listed and not isinstance(given, str) else []
    if len(values) != len(names) or any(isinstance(v, list | tuple | np.ndarray) for v in values):
        raise InvalidCosts(
            f"{what} has shape {np.shape(given)}; it must list one value for each of the "
            f"{len(names)} features, in column order"
        )
    return dict(zip(names, values, strict=True))


def _unknown(name: str, names: Sequence[str], what: str) -> InvalidCosts:
    return InvalidCosts(f"{what} name {name!r}, which is not a feature; {near(name, names)}")


def _check_complete(listed: Container[str], names: Sequence[str], what: str) -> None:
    absent = [name for name in names if name not in listed]
    if absent:
        shown = ", ".join(repr(name) for name in absent[:5])
        raise InvalidCosts(
            f"{what} list no price for {len(absent)} of {len(names)} features ({shown}); "
            "every feature needs one, 0 for those that are free; leave out columns that are no features"
        )


def _number(value: Any, what: str, name: str, *, comma: bool = False) -> float:
    try:
        number = float(value.replace(",", ".") if comma else value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise InvalidCosts(f"{what} of {name!r} is {value!r}; costs must be numbers") from None
    if not math.isfinite(number):
        raise InvalidCosts(f"{what} of {name!r} is {number}; costs must be finite numbers")
    if number < 0:
        raise InvalidCosts(f"{what} of {name!r} is {number}; costs must be zero or more")
    if not are_prices(number):
        raise InvalidCosts(
            f"{what} of {name!r} is {number}; costs must be zero, or from {LEAST_COST:g} to "
            f"{LARGEST_COST:g}: take another unit"
        )
    return number + 0.0  # not -0.0, by which kernels would divide


def are_prices(values: Any) -> Any:
    """Whether numbers can be prices: zero, or neither too small nor too large to be summed and compared."""
    return (values == 0) | ((values >= LEAST_COST) & (values <= LARGEST_COST))


def _checked(costs: Costs, names: Sequence[str]) -> Costs:
    """The prices of another model, which somebody may have changed."""
    cost = [_number(value, "cost", name) for value, name in zip(costs.cost, names, strict=True)]
    discount = [_number(value, "discount", name) for value, name in zip(costs.discount, names, strict=True)]
    return costs._replace(cost=np.array(cost), discount=np.array(discount))


def _label(value: Any) -> str | None:
    """A group's name, or None where the cell is empty."""
    text = "" if value is None else str(value)
    return None if text in ("", "nan", "<NA>") else text


def _assemble(prices: Sequence[_Price], names: Sequence[str]) -> Costs:
    members: dict[tuple[str, bool], list[int]] = {}
    for j, price in enumerate(prices):
        alone = price.group is None
        members.setdefault((names[j] if alone else str(price.group), alone), []).append(j)
    group = np.empty(len(prices), np.int32)
    discount = np.zeros(len(prices))
    for number, ((label, _), features) in enumerate(members.items()):
        group[features] = number
        discount[features] = _discounts(label, features, prices, names)
    return Costs(np.array([p.cost for p in prices]), discount, group, tuple(label for label, _ in members))


def _discounts(
    label: str, features: Sequence[int], prices: Sequence[_Price], names: Sequence[str]
) -> list[float]:
    """Discounts of one group: published ones for a panel, where none is the full price; zero for a sensor."""
    given = [prices[j].discount for j in features]
    if any(d is not None for d in given):
        return [prices[j].cost if d is None else d for j, d in zip(features, given, strict=True)]
    first = features[0]
    for j in features:
        if prices[j].cost != prices[first].cost:
            raise InvalidCosts(
                f"{prices[j].where}group {label!r} has two prices, {prices[first].cost} for "
                f"{names[first]!r} and {prices[j].cost} for {names[j]!r}; a sensor has one price for all "
                "its columns; where they differ, say with 'discount_cost' what later ones cost"
            )
    return [0.0] * len(features)
