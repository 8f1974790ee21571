"""Parquet, Arrow and SQL give the same rows as the CSV they were made from."""

import sqlite3

import duckdb
import numpy as np
import pytest

from budgetforest import InvalidData, MissingExtra
from budgetforest.data.table import Schema
from budgetforest.files import typed
from budgetforest.files.applying import Reader
from budgetforest.files.delimited import Delimited
from budgetforest.files.learning import Wish, learn_rows
from budgetforest.runtime.errors import InvalidValue

pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "n": [1.5, None, -3.0, 4.0],
    "i": [1, 2, 2**40, None],
    "t": [True, False, None, True],
    "c": ["red", "blue", None, "?"],
    "y": [1, 0, 1, None],
}


def as_csv(path):
    rows = zip(*COLUMNS.values(), strict=True)
    lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    return Delimited(path)


def as_parquet(path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(COLUMNS), path)
    return typed.open_file(path)


def as_feather(path):
    import pyarrow.feather

    table = pa.table(COLUMNS)
    place = table.column_names.index("c")
    pyarrow.feather.write_feather(table.set_column(place, "c", table["c"].dictionary_encode()), path)
    return typed.open_file(path)


def as_duckdb(path):
    with duckdb.connect(str(path)) as connection:
        connection.register("given", pa.table(COLUMNS))
        connection.execute("create table t as select * from given")
    return typed.open_query("select * from t", str(path))


def as_sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (n real, i integer, t integer, c text, y integer)")
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", zip(*COLUMNS.values(), strict=True))
    connection.close()
    return typed.open_query("select * from t", f"sqlite:{path}")


def as_query_of_a_file(path):
    as_csv(path)
    return typed.open_query(f"select * from read_csv('{path}', nullstr = ['', '?'])", None)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (as_parquet, "a.parquet"),
        (as_feather, "a.feather"),
        (as_duckdb, "a.duckdb"),
        (as_sqlite, "a.db"),
        (as_query_of_a_file, "a.csv"),
    ],
)
def test_every_source_gives_the_rows_of_the_csv(tmp_path, make, name):
    plain = learn_rows(as_csv(tmp_path / "plain.csv"), Wish("y"))
    other = learn_rows(make(tmp_path / name), Wish("y"))
    assert other.table.schema == plain.table.schema
    assert np.array_equal(other.table.matrix, plain.table.matrix, equal_nan=True)
    assert other.labels.tolist() == plain.labels.tolist() == [1, 0, 1]
    assert other.unlabelled == 1


def test_rows_are_numbered_from_one(tmp_path):
    source = as_parquet(tmp_path / "a.parquet")
    (block,) = source.blocks([0], [3], ())
    assert [block.where(row) for row in (0, 3)] == ["row 1", "row 4"]
    assert source.size == block.upto == 4


def test_columns_that_differ_in_case_only(tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"a": [1.0], "b": [2.0], "B": [3.0]}), tmp_path / "a.parquet")
    (block,) = typed.open_file(tmp_path / "a.parquet").blocks([0, 1, 2], (), ())
    assert block.numbers.tolist() == [[1.0, 2.0, 3.0]]


def test_texts_where_the_model_has_numbers_are_read_as_numbers_or_named(tmp_path):
    import pyarrow.parquet

    schema = Schema(("a",), (None,))
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"a": ["1.5", "NA", None]}), path)
    (piece,) = Reader(typed.open_file(path), schema).pieces()
    assert piece.table.matrix[0, 0] == 1.5
    assert np.isnan(piece.table.matrix[1:]).all()
    pyarrow.parquet.write_table(pa.table({"a": ["1.5", "many"]}), path)
    with pytest.raises(InvalidValue, match="row 2: 'a' is 'many', which is not a finite number"):
        list(Reader(typed.open_file(path), schema).pieces())


@pytest.mark.parametrize(
    ("sql", "database", "message"),
    [
        ("select * from absent", None, "the query failed"),
        ("select * from absent", "sqlite:absent.db", "no SQLite file 'absent.db'"),
        ("select 1 as a where false", None, "gives no rows"),
        ("select 1 as a, 2 as a", None, "both called 'a'"),
    ],
)
def test_queries_that_cannot_be_answered_say_why(tmp_path, monkeypatch, sql, database, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidData, match=message):
        typed.open_query(sql, database)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_what_its_name_says(tmp_path):
    (tmp_path / "a.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidData, match="cannot read"):
        typed.open_file(tmp_path / "a.parquet")


def test_a_type_that_is_no_feature_is_named(tmp_path):
    import pyarrow.parquet

    days = pa.array([1, 2], pa.date32())
    pyarrow.parquet.write_table(pa.table({"day": days, "y": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidData, match=r"'day' holds values of type DATE.*--drop"):
        learn_rows(typed.open_file(tmp_path / "a.parquet"), Wish("y"))


def test_infinities_are_named_with_their_row(tmp_path):
    import pyarrow.parquet

    table = pa.table({"a": [1.0, float("inf")], "y": [0, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidData, match="row 2: 'a' is 'inf', which is not a finite number"):
        learn_rows(typed.open_file(tmp_path / "a.parquet"), Wish("y"))


def test_decimals_are_the_doubles_of_a_csv(tmp_path):
    import pyarrow.parquet

    texts = [f"{tenths / 10:.1f}" for tenths in range(1000)]
    decimals = pa.array(texts).cast(pa.decimal128(6, 1))
    pyarrow.parquet.write_table(pa.table({"a": decimals}), tmp_path / "a.parquet")
    (piece,) = Reader(typed.open_file(tmp_path / "a.parquet"), Schema(("a",), (None,))).pieces()
    assert piece.table.matrix[:, 0].tolist() == list(map(float, texts))


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install \"budgetforest\[data\]\""):
        typed.open_file(tmp_path / "rows.arrow")
