"""Any dataframe or array as one matrix of numbers, with the names and categories that explain it.

A nominal column becomes category numbers; a missing or unseen category becomes NaN, like any missing
value. What was learnt from the training rows (the ``Schema``) is applied unchanged to later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from budgetforest.runtime.arrays import MAX_CODES, Anything, Flags, Ids, Matrix
from budgetforest.runtime.errors import InvalidData, InvalidParameter, near

if TYPE_CHECKING:  # a decision of a single row needs no dataframes
    import narwhals as nw

MISSING = ("", "NA", "N/A", "#N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "?", "-", ".")
"""Texts in files that stand for a missing value."""


class Schema(NamedTuple):
    """What the columns of a table mean."""

    names: tuple[str, ...]
    """(m) feature names; ``x0, x1, ...`` for plain arrays."""
    categories: tuple[tuple[Any, ...] | None, ...]
    """(m) the categories of a nominal feature in code order, None for a numeric one."""
    missing: tuple[str, ...] = MISSING
    """Texts that stand for a missing value in files; Python's own values need none."""
    target: str | None = None
    """The column of the labels, if the training rows were read from a file."""

    @property
    def nominal(self) -> Flags:
        """(m) which features are nominal."""
        return np.array([c is not None for c in self.categories], dtype=bool)


@dataclass(frozen=True)
class Table:
    """Rows that are numbers already, with the schema that explains them: what files are read into."""

    matrix: Matrix
    schema: Schema

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.matrix.shape

    def under(self, schema: Schema) -> Matrix:
        """The numbers, if they were made by this schema."""
        if self.schema != schema:
            raise InvalidData("these rows were read by the schema of another model; read them by this one's")
        return self.matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, rows: Any) -> Table:
        return Table(self.matrix[rows], self.schema)


@dataclass(frozen=True)
class Picked:
    """Some rows of a matrix, which are copied only where they are read."""

    matrix: Matrix
    at: Ids

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.at), self.matrix.shape[1]

    @property
    def dtype(self) -> Any:
        """Of the numbers."""
        return self.matrix.dtype

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, which: Any) -> Matrix:
        """A copy of some rows, or of some columns of them."""
        rows, *columns = which if isinstance(which, tuple) else (which,)
        found: Matrix = self.matrix[(slice(None), *columns)][self.at[rows]]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes get a copy of these rows alone."""
        return np.asarray, (self[:],)


Numbers: TypeAlias = Matrix | Picked
"""Rows of numbers that can be read a part at a time."""


def as_frame(X: Anything) -> nw.DataFrame[Any] | None:
    """The narwhals view of a pandas, polars or other dataframe; None for anything else."""
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in X.columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidData(f"X has two columns {twice!r}; every feature needs a name of its own") from None
    return frame if isinstance(frame, nw.DataFrame) else None


def learn_schema(X: Anything, names: Sequence[str], categorical: Anything = None) -> Schema:
    """The schema of training rows: categories are what a nominal column contains, sorted.

    Nominal are categorical and string columns of dataframes and whatever ``categorical`` lists, by
    name, position or boolean mask.
    """
    if isinstance(X, Table):
        return X.schema
    listed = _listed(categorical, names)
    frame = as_frame(X)
    categories: list[tuple[Any, ...] | None] = []
    for j, name in enumerate(names):
        column = frame[:, j] if frame is not None else None
        if j in listed or (column is not None and _is_nominal(column)):
            categories.append(_categories(column if column is not None else X[:, j], name))
        else:
            categories.append(None)
    return Schema(tuple(names), tuple(categories))


def merged_schema(blocks: Sequence[Schema]) -> Schema:
    """The schema of rows from those of their blocks, which agree on what is nominal."""
    names = blocks[0].names
    kinds = zip(*(block.categories for block in blocks), strict=True)
    categories = (
        None if kind[0] is None else _in_code_order(set().union(*kind), name)
        for name, kind in zip(names, kinds, strict=True)
    )
    return Schema(names, tuple(categories))


def to_matrix(X: Anything, schema: Schema) -> Matrix:
    """Rows as numbers, (n, m), without a copy where the input is numeric and homogeneous already."""
    if isinstance(X, Table):
        return X.under(schema)
    frame = as_frame(X)
    if frame is None and not schema.nominal.any():
        return X  # type: ignore[no-any-return]
    if frame is not None and not schema.nominal.any() and _floats(frame) is not None:
        return np.asarray(frame.to_numpy(), dtype=_floats(frame))
    rows, columns = X.shape
    narrow = frame is None and X.dtype == np.float32
    matrix = np.empty((rows, columns), np.float32 if narrow else np.float64, order="F")
    for j, (name, categories) in enumerate(zip(schema.names, schema.categories, strict=True)):
        column = frame[:, j] if frame is not None else X[:, j]
        if categories is None:
            matrix[:, j] = _numbers(column, name)
        else:
            matrix[:, j] = _category_codes(column, categories)
    return matrix


def names_of(estimator: Any, n_features: int) -> list[str]:
    """The names of the columns, once they are learnt."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_features)] if names is None else list(map(str, names))


def read_rows(X: Anything, schema: Schema) -> Matrix:
    """A caller's rows as numbers; refused if their columns are not those of the schema."""
    if isinstance(X, Table):
        return X.under(schema)
    if hasattr(X, "collect"):
        raise InvalidData(f"X is a {type(X).__name__}, which is not computed yet; pass X.collect()")
    frame = as_frame(X)
    if frame is None:
        X = np.asarray(X)
        if X.dtype.kind not in "fiubOUS":
            raise InvalidData(f"X is an array of {X.dtype}; features are numbers, booleans or strings")
        if X.dtype not in (np.float32, np.float64) and not schema.nominal.any():
            X = _as_doubles(X, "X")
    if len(X.shape) != 2 or X.shape[1] != len(schema.names):
        raise InvalidData(f"X has shape {X.shape}; it must have the {len(schema.names)} features as columns")
    if frame is not None:
        _check_columns(frame.columns, schema.names)
    matrix = to_matrix(X, schema)
    infinite = np.isinf(matrix).any(axis=0)
    if infinite.any():
        name = schema.names[int(infinite.argmax())]
        raise InvalidData(f"{name!r} holds an infinite value; values are finite, NaN where missing")
    return matrix


def _check_columns(columns: Sequence[Any], names: Sequence[str]) -> None:
    """Columns without text for names are taken by position."""
    for column, name in zip(columns, names, strict=True):
        if isinstance(column, str) and column != name:
            hint = "bring the columns into the order of training" if column in names else near(column, names)
            raise InvalidData(f"column {column!r} stands where {name!r} was in training; {hint}")


def _as_doubles(values: Any, what: str) -> Any:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"{what} holds what is no number: {error}") from None


def _floats(frame: nw.DataFrame[Any]) -> Any:
    """The one float type that all columns have, or None."""
    import narwhals as nw

    found = set(frame.schema.values())
    return {nw.Float32: np.float32, nw.Float64: np.float64}.get(
        type(found.pop()) if len(found) == 1 else None  # type: ignore[arg-type]
    )


def _is_nominal(column: nw.Series[Any]) -> bool:
    import narwhals as nw

    if isinstance(column.dtype, nw.Object):
        return any(isinstance(value, str) for value in _values(column))
    return isinstance(column.dtype, nw.Categorical | nw.Enum | nw.String)


def _listed(categorical: Anything, names: Sequence[str]) -> set[int]:
    """Positions of the features that the caller calls nominal."""
    if categorical is None:
        return set()
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise InvalidParameter(
            f"categorical_features is {categorical!r}; it must be a list of names or positions, or a mask"
        )
    items = list(categorical)
    if items and all(isinstance(i, bool | np.bool_) for i in items):
        if len(items) != len(names):
            raise InvalidParameter(
                f"categorical_features is a mask of {len(items)} flags; there are {len(names)} features"
            )
        return {j for j, flag in enumerate(items) if flag}
    positions = {name: j for j, name in enumerate(names)}
    found = set()
    for item in items:
        if isinstance(item, int | np.integer) and 0 <= item < len(names):
            found.add(int(item))
        elif isinstance(item, str) and item in positions:
            found.add(positions[item])
        else:
            raise InvalidParameter(
                f"categorical_features lists {item!r}, which is not a feature; " + near(str(item), names)
            )
    return found


def _values(column: Any) -> list[Any]:
    """Python values of a column, None where missing."""
    if isinstance(column, np.ndarray):
        return [None if v is None or v != v else v for v in column.tolist()]
    nulls = column.is_null().to_list()  # pandas' NA cannot be compared
    return [None if null or v != v else v for v, null in zip(column.to_list(), nulls, strict=True)]


def _categories(column: Any, name: str) -> tuple[Any, ...]:
    return _in_code_order(set(_values(column)) - {None}, name)


def _in_code_order(found: set[Any], name: str) -> tuple[Any, ...]:
    if len(found) > MAX_CODES - 1:
        raise InvalidData(
            f"nominal feature {name!r} has {len(found)} categories; at most {MAX_CODES - 1} can be "
            "told apart: merge the rare ones or encode it as a number"
        )
    return tuple(sorted(found, key=lambda v: (str(type(v)), v)))


def _category_codes(column: Any, categories: Sequence[Any]) -> list[float]:
    code = {category: float(i) for i, category in enumerate(categories)}
    return [code.get(value, np.nan) for value in _values(column)]


def _numbers(column: Any, name: str) -> Any:
    import narwhals as nw

    if isinstance(column, np.ndarray):
        return _as_doubles(column, f"numeric feature {name!r}")
    if column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean):
        return column.cast(nw.Float64).to_numpy()
    try:
        return np.array([np.nan if v is None else float(v) for v in _values(column)])
    except (TypeError, ValueError):
        is_time = isinstance(column.dtype, nw.Datetime | nw.Date | nw.Duration | nw.Time)
        hint = "turn times into numbers, as days since an event" if is_time else "as they were in training"
        raise InvalidData(
            f"feature {name!r} holds values of type {column.dtype}; features are numbers, booleans, strings "
            f"or categories: {hint}"
        ) from None
