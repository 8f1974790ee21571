"""Files become tables: every oddity of a CSV has one outcome, and numbers are Python's."""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetforest import InvalidData, UnusualData
from budgetforest.data.table import MISSING, Schema
from budgetforest.files import piped
from budgetforest.files.applying import Reader, labelled_rows
from budgetforest.files.delimited import Delimited
from budgetforest.files.learning import Wish, learn_rows
from budgetforest.files.piped import Piped
from budgetforest.runtime.errors import InvalidValue

PLAIN = "a,b,y\n1,red,yes\n2.5,blue,no\n-3e2,red,no\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Delimited(path)

    return write


def learn(source, **wish):
    return learn_rows(source, Wish("y", **wish))


def rows_of(source, **wish):
    """What was learnt, as plain values."""
    learnt = learn(source, **wish)
    schema = learnt.table.schema
    rows = [
        [
            None if np.isnan(value) else names[int(value)] if names is not None else value
            for value, names in zip(row, schema.categories, strict=True)
        ]
        for row in learnt.table.matrix.tolist()
    ]
    return rows, learnt.labels.tolist()


EXPECTED = ([[1.0, "red"], [2.5, "blue"], [-300.0, "red"]], ["yes", "no", "no"])


@pytest.mark.parametrize(
    "content",
    {
        "plain": PLAIN,
        "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
        "no last line end": PLAIN.rstrip("\n"),
        "windows line ends": PLAIN.replace("\n", "\r\n"),
        "semicolons": PLAIN.replace(",", ";"),
        "tabs": PLAIN.replace(",", "\t"),
        "bars": PLAIN.replace(",", "|"),
        "decimal commas": PLAIN.replace(",", ";").replace("2.5", "2,5"),
        "quotes": '"a","b","y"\n"1","red","yes"\n"2.5","blue",no\n"-3e2",red,"no"\n',
        "empty lines": "\n\na,b,y\n\n1,red,yes\n\n2.5,blue,no\n-3e2,red,no\n\n\n",
        "spaces": " a , b,y \n 1, red ,yes\n2.5 ,  blue, no \n -3e2,red ,no\n",
        "spaces around quotes": '"a", "b" ,y\n 1, "red" ,yes\n2.5,blue,no\n-3e2,red,no',
    }.items(),
    ids=lambda item: item[0],
)
def test_the_same_table_however_it_is_written(write, content):
    assert rows_of(write(content[1])) == EXPECTED


def test_an_empty_line_before_a_last_quote_is_empty(write):
    assert rows_of(write('a,y\n\n1,"0"\n2,"1"')) == ([[1.0], [2.0]], [0, 1])


def test_quoted_cells_hold_delimiters_line_ends_and_quotes(write):
    rows, _ = rows_of(write('a,y\n"x, ""y""\nz",1\n"",0\n" x",0\n'))
    assert rows == [['x, "y"\nz'], [None], ["x"]]


@pytest.mark.parametrize("marker", MISSING)
def test_missing_markers_are_missing_in_numbers_and_categories(write, marker):
    rows, labels = rows_of(write(f"a,b,y\n1,x,0\n{marker},{marker},1\n2,z,1\n"))
    assert rows == [[1.0, "x"], [None, None], [2.0, "z"]]
    assert labels == [0, 1, 1]


def test_own_missing_markers_stay_with_the_schema(write):
    source = write("a,b,y\n-999,x,0\n1,gone,1\n2,z,1\n")
    learnt = learn(source, missing=["-999", "gone"])
    assert np.isnan(learnt.table.matrix[0, 0])
    assert np.isnan(learnt.table.matrix[1, 1])
    later = Reader(write("a,b\n-999.0,gone\n"), learnt.table.schema)
    assert np.isnan(next(later.pieces()).table.matrix).all()


def test_delimiters_within_quotes_do_not_count(write):
    assert write('"a;b;c",y\n1,2\n').names == ("a;b;c", "y")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_pipe_is_read_as_a_file_whatever_ends_its_first_line(write, ends):
    text = f'a,b{ends}1,"x\ny"{ends}2,"x\r\ny"{ends}'
    blocks = [next(s.blocks([0], [1], ())) for s in (write(text), Piped(io.BytesIO(text.encode()), "pipe"))]
    assert [block.texts[1] for block in blocks] == 2 * [["x\ny", "x\r\ny"]]


@pytest.mark.parametrize("chunk", [14, 1 << 24])
def test_thousands_in_a_pipe_are_told_by_the_parts_before_them(monkeypatch, chunk):
    monkeypatch.setattr(piped, "CHUNK", chunk)

    def first_column(text):
        return [b.numbers[0, 0] for b in Piped(io.BytesIO(text.encode()), "pipe").blocks([0], (), ())]

    assert first_column("a;b\n7,27;0\n1,200;0\n950;0\n")[0] == 7.27
    with pytest.raises(
        InvalidData, match=r"'a' of pipe has '1,200' beside whole numbers: is that 1200 or 1\.2"
    ):
        first_column("a;b\n950;0\n1,200;0\n")


def test_a_lone_quote_in_a_pipe_ends_with_its_cell():
    rows = ['5",1'] + [f"word {i},{i}" for i in range(300_000)]
    source = Piped(io.BytesIO("\n".join(["a,b", *rows, ""]).encode()), "pipe")
    assert sum(len(block.numbers) for block in source.blocks([1], [0], ())) == len(rows)


def test_an_open_quote_in_a_long_pipe_is_named():
    text = "a,b\n1,2\n" + '"3,4\n' + "5,6\n" * 1_000_000
    with pytest.raises(InvalidData, match=r"line 3 .*quote"):
        list(Piped(io.BytesIO(text.encode()), "pipe").blocks([0], (), ()))


def test_true_and_false_are_one_and_zero(write):
    assert rows_of(write("a,y\nTrue,0\nfalse,1\n"))[0] == [[1.0], [0.0]]


def test_numbers_may_be_named_categories(write):
    rows, _ = rows_of(write("a,y\n10,0\n9,1\n"), categorical=["a"])
    assert rows == [["10"], ["9"]]


def test_labels_are_whole_numbers_or_texts(write):
    assert rows_of(write("a,y\n1,0\n2,1.0\n"))[1] == [0, 1]
    assert rows_of(write("a,y\n1,0\n2,1.5\n"))[1] == ["0", "1.5"]
    assert rows_of(write("a,y\n1,007\n2,b\n"))[1] == ["007", "b"]
    assert rows_of(write("a,y\n1,01\n2,1\n"))[1] == ["01", "1"]
    assert rows_of(write("a,y\n1,1234567890123.00\n2,1\n"))[1] == [1234567890123, 1]


def test_many_decimal_labels_are_refused_unless_they_are_named_categories(write):
    labels = [f"{i / 4:g}" for i in range(21)]
    text = "\n".join(["a;y", *(f"{i};{label}" for i, label in enumerate(labels))])
    for content in (text, text.replace(".", ",")):
        with pytest.raises(InvalidData, match=r"column 'y' has 21 different numbers, as '0[.,]25'; .*ranges"):
            learn(write(content))
    assert learn(write(text), categorical=["y"]).labels.tolist() == labels
    few = "\n".join(text.splitlines()[:21])
    assert learn(write(few)).labels.tolist() == labels[:20]
    assert learn(write(text + "\n9;old")).labels.tolist() == [*labels, "old"]
    long = [f"{10**19 + i}" for i in range(30)]  # of too many digits to be numbers
    assert learn(write("\n".join(["a,y", *(f"1,{label}" for label in long)]))).labels.tolist() == long


def test_rows_without_a_label_are_left_out_and_counted(write):
    learnt = learn(write("a,y\n1,x\n2,\n3,NA\n4,z\n"))
    assert learnt.unlabelled == 2
    assert learnt.table.matrix.tolist() == [[1.0], [4.0]]


def test_ten_thousand_columns(write):
    names = [f"f{j}" for j in range(10_000)]
    lines = [",".join(names), *(",".join(str(i + j) for j in range(10_000)) for i in range(3))]
    learnt = learn_rows(write("\n".join(lines)), Wish("f0"))
    assert learnt.table.shape == (3, 9_999)
    assert learnt.table.matrix[2, -1] == 10_001


def test_huge_integers_are_rounded_like_pythons(write):
    text = "123456789012345678901234567890"
    assert rows_of(write(f"a,y\n{text},0\n-{text},1\n"))[0] == [[float(text)], [-float(text)]]


def test_a_column_of_mostly_numbers_says_why_it_is_nominal(write):
    source = write("a,y\n1,0\n2,1\nnone yet,1\n")
    with pytest.warns(UnusualData, match="'a' is read as categories, because 'none yet' on line 4"):
        rows, _ = rows_of(source)
    assert rows == [["1"], ["2"], ["none yet"]]


@pytest.mark.parametrize("other", ["1", "x", '"0,5"'])
def test_decimal_commas_among_commas_are_pointed_out(write, other):
    cells = ['"-0,86"', '"1,25"', '",5"', other]
    source = write("a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)))
    message = "'a' is read as categories, because '-0,86' on line 2 is no number; write decimals with a point"
    with pytest.warns(UnusualData, match=message):
        learn(source)


def test_texts_with_a_comma_are_no_decimals(write, recwarn):
    learn(write('a,y\n"1,2",0\nred,1\nblue,1\n'))
    assert not recwarn


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,y\n", "has columns but no rows"),
        ("\na,a,y\n1,2,3\n", r"\.csv, line 2: columns 1 and 2 are both called 'a'"),
        ("a,b\n1,2\n", r"\.csv: there is no column 'y', which should be the target"),
        ("y\n1\n2\n", "no column besides the target"),
        ("a,y\n1,2\n1,2,3\n", "line 3 has 3 cells, the header 2 columns"),
        ("a,b,y\n1,2,3\n\n1,2\n", "line 4 has 2 cells, the header 3 columns"),
        ("a,y\n1,x\n2,x\n", "one class only, 'x'"),
        ("a,y\n1,\n2,?\n", "no row has a label in column 'y'"),
        ('a,y\n"1,2\n3,4\n', "line 2 opens a quote that is never closed"),
        ('a,y\n1,2\n"1"x,2\n', "line 3 has text between a closing quote"),
        ('a,"y\n1,2\n', "a quote in the header"),
        ('"id" nr,a,y\n1,2,3\n', "header of .* has text between a closing quote"),
        ('"a"\t,"y"\n1,2\n', "header of .* has text between a closing quote"),
        (b"a,y\nx,2\nJos\xe9,1\n", r"\.csv, line 3: .*'José' if it were Latin-1.*iconv"),
        (b"a,y\n1,2\nJos\xe9,1\n", r"\.csv, line 3: .*'José' if it were Latin-1.*iconv"),
        (b"Jos\xe9,y\n1,1\n", "header .* is not UTF-8"),
        ("a,y\n1,0\n".encode("utf-16"), "not a text in UTF-8"),
        ("a,y\r1,2\r3,4\r", "carriage return alone"),
        ("a,y\n1,2\r\n3,4\n", "line ends of two kinds"),
        ("a,y\n1,2\n  \n3,4\n", "line 3 has 1 cell, the header 2 columns"),
        ("a,y\n1," + "x" * 3_000_000 + "\n", "line 2 has more than 2,000,000 bytes"),
        ('a,y\n"1\n2",0\n\n1,2,3\n', "line 5 has 3 cells"),
        (
            "a,y\n" + "".join(f"t{i},{i % 2}\n" for i in range(300)),
            "'a' has more than 255 categories.*--drop",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(write, content, message):
    with pytest.raises(InvalidData, match=f"(?s){message}"):
        learn(write(content))


def test_a_column_without_a_name_is_called_by_its_place(write):
    assert write(",a,y\n0,1,2\n").names == ("column 1", "a", "y")


def test_unknown_columns_to_drop_list_the_near_ones(write):
    with pytest.raises(InvalidData, match=r"no column 'colour'.*did you mean 'color'"):
        learn(write("color,b,y\n1,2,3\n"), drop=["colour"])


SCHEMA = Schema(("a", "b"), (None, ("blue", "red")))


def test_later_rows_follow_the_schema_wherever_columns_stand(write):
    source = write("other,b,a\n?,red,1\n?,NA,\n")
    piece = next(Reader(source, SCHEMA).pieces())
    assert piece.table.matrix[0].tolist() == [1.0, 1.0]
    assert np.isnan(piece.table.matrix[1]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a,b\n1,red\n\nten,red\n",
            "line 4: 'a' is 'ten', which is not a finite number; .* an empty cell, or one of NA, N/A,",
        ),
        ("a,b\ninf,red\n", "line 2: 'a' is 'inf', which is not a finite number"),
        ("a,b\n1e400,red\n", "line 2: 'a' is '1e400', which is not a finite number"),
        ('a,b\n1,"x\ny"\n', "line 2: 'b' is 'x\\\\ny', which was not there in training"),
        ("a,b\n1,red\n2,rad\n", "line 3: 'b' is 'rad', .*did you mean 'red'"),
    ],
)
def test_a_mismatch_names_the_column_the_value_and_the_line(write, content, message):
    with pytest.raises(InvalidValue, match=message):
        list(Reader(write(content), SCHEMA).pieces())


def test_unseen_categories_may_be_missing(write):
    piece = next(Reader(write("a,b\n1,green\n"), SCHEMA, unseen=True).pieces())
    assert np.isnan(piece.table.matrix[0, 1])


def test_an_absent_feature_is_named(write):
    with pytest.raises(InvalidData, match="no column 'b', which the model needs"):
        Reader(write("a,c\n1,2\n"), SCHEMA)


def test_a_later_file_that_is_not_utf_8_is_named(write):
    with pytest.raises(InvalidData, match=r"\.csv, line 2: .*'José' if it were Latin-1"):
        list(Reader(write(b"a,b\nJos\xe9,red\n"), SCHEMA).pieces())


def test_labels_of_later_rows_are_those_of_the_model(write):
    source = write("a,b,y\n1,red,1.0\n2,red,\n3,blue,0\n")
    rows = labelled_rows(source, SCHEMA, "y", [0, 1])
    assert rows.labels.tolist() == [1, 0]
    assert rows.unlabelled == 1
    with pytest.raises(InvalidValue, match="line 4: 'y' is '0', which was not there in training"):
        labelled_rows(source, SCHEMA, "y", [1, 2])


def test_a_mismatch_far_down_names_its_line(write):
    rows = ["1,red", '2,"blue"', "", '"3",red'] * 50_000
    for cell, place in (("x", 7), ("y", 123_457), ("z", 199_999)):
        content = "\n".join(["a,b", *rows[:place], f"{cell},red", *rows[place:]])
        with pytest.raises(InvalidValue, match=f"line {place + 2}: 'a' is '{cell}'"):
            list(Reader(write(content), SCHEMA).pieces())


TEXTS = st.text(st.sampled_from('ab" ,;\n1.\té'), max_size=6)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.integers(1, 40))
def test_cells_are_what_the_csv_module_wrote(tmp_path_factory, rows, chunk):
    """Of a file, and of a pipe in parts of any size."""
    cells = [[f"x{a}x", f"x{b}x"] for a, b in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["a", "b"], *cells])
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text(text.getvalue(), newline="")
    before, piped.CHUNK = piped.CHUNK, chunk
    try:
        for source in (Delimited(path), Piped(io.BytesIO(path.read_bytes()), "pipe")):
            blocks = list(source.blocks((), (0, 1), ()))
            assert [list(row) for b in blocks for row in zip(*b.texts.values(), strict=True)] == cells
            lines = [int(b.where(i).split()[1]) for b in blocks for i in range(len(b.numbers))]
            ends = np.cumsum([2, *(1 + sum(cell.count("\n") for cell in row) for row in cells)])
            assert lines == ends[:-1].tolist()
            assert blocks[-1].upto == len(cells)
    finally:
        piped.CHUNK = before


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(1e-5, 1e5).map(lambda x: f"{x:.17f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.builds(
        lambda whole, part, power: f"{whole}.{part:020d}e{power}",
        st.integers(0, 10**9),
        st.integers(0, 10**20 - 1),
        st.integers(-30, 30),
    ),
    # next to the middle of two doubles
    st.builds(
        lambda x, tail: f"{2**53 + 2 * x + 1}.0{tail}", st.integers(0, 10**6), st.sampled_from(["", "1", "0"])
    ),
    st.integers(2**53, 2**56).map(lambda digits: f"{digits / 10:.1f}"),
    st.integers(2**53, 10**17).map(lambda digits: f"{digits}e-11"),
)


@given(st.lists(DECIMALS, min_size=1, max_size=50))
def test_numbers_are_pythons_to_the_last_bit(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text("a,b\n" + "".join(f"{text},\n" for text in texts))
    (block,) = Delimited(path).blocks([0], (), MISSING)
    for number, text, row in zip(block.numbers[:, 0], texts, range(len(texts)), strict=True):
        finite = np.isfinite(float(text))
        odd = block.odd.get(0, {})
        assert number == float(text) if finite else odd[row] == text
        assert (row in odd) != finite


DUCKDB_NUMBER = re.compile(r"\+-[\d.,]+(e\d+)?", re.I)
"""What DuckDB takes for a number and Python does not: two signs."""


@given(
    st.one_of(
        st.text(st.sampled_from("0123456789+-.eE, _x"), max_size=7),
        st.text(st.sampled_from("0123456789" * 3 + "./:e"), min_size=8, max_size=24),
        st.builds("{}.{}".format, st.integers(-9, 9), st.text(st.sampled_from("0123456789" * 9 + "/:"))),
    ),
)
def test_what_is_a_number_is_what_python_takes_as_one(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text(f'a;b\n"{text}";\n')
    (block,) = Delimited(path).blocks([0], (), MISSING)
    try:
        number = float(text.strip(" ").replace(",", "."))
        assert block.numbers[0, 0] == number if np.isfinite(number) else block.odd
    except ValueError:
        is_missing = text.strip(" ") in MISSING
        assert bool(block.odd) != (is_missing or DUCKDB_NUMBER.fullmatch(text.strip(" ")) is not None)
