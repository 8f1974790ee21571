"""Answers as lines of a CSV are read back as they were."""

import csv
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetforest.cli.csv_answers import csv_header, csv_lines
from budgetforest.inference.ledger import Ledger
from budgetforest.inference.predict import Answers

TEXT = st.text(st.sampled_from('ab";, \r\né=+-@1\\'), min_size=1, max_size=5)
FORMULA = tuple("=+-@\t\r")


def unguarded(cell):
    """A cell as a reader takes it that knows of the apostrophe."""
    assert not cell.startswith(FORMULA) or re.fullmatch(r"[+-]\d+", cell)
    return cell[1:] if cell[:1] == "'" else cell


def names_in(cell):
    """The names of a list; a backslash before a semicolon or a backslash takes it as it is."""
    assert not cell.startswith(FORMULA)
    names = re.findall(r"((?:[^;\\]|\\.)+)(?:;|$)", cell, re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", name).removeprefix("'") for name in names]


@given(
    names=st.lists(TEXT, min_size=1, max_size=4, unique=True),
    classes=st.lists(TEXT, min_size=2, max_size=3, unique=True),
    kept=st.lists(st.lists(TEXT, min_size=5, max_size=5), max_size=2),
    seed=st.integers(0, 99),
)
def test_lines_are_read_back_as_they_were(names, classes, kept, seed):
    rng, n = np.random.default_rng(seed), 5
    acquired = rng.random((n, len(names))) < 0.5
    spent = rng.choice([0.0, 0.1 + 0.2, 3.0, 1e-9, 123456.75], n)
    share = rng.dirichlet(np.ones(len(classes)), n)
    share[0] = np.eye(len(classes))[0]
    label = share.argmax(axis=1).astype(np.int32)
    forest = SimpleNamespace(classes=tuple(classes), schema=SimpleNamespace(names=tuple(names)))
    raw = bytes(
        csv_lines(forest, dict(enumerate(kept)), Answers(label, share, Ledger(acquired, acquired, spent)))
    )
    lines = list(csv.reader(io.StringIO((csv_header(names) + raw).decode(), newline="")))
    assert list(map(unguarded, lines[0])) == names
    assert len(lines) == n + 1
    for i, line in enumerate(lines[1:]):
        assert list(map(unguarded, line[: len(kept)])) == [column[i] for column in kept]
        assert unguarded(line[len(kept)]) == classes[label[i]]
        assert line[len(kept) + 1] == f"{spent[i]:.12g}"
        paid_for = [name for name, paid in zip(names, acquired[i], strict=True) if paid]
        assert names_in(line[len(kept) + 2]) == paid_for
        assert line[len(kept) + 3 :] == [f"{part:.6f}" for part in share[i].round(6)]


def test_no_rows_are_no_lines():
    forest = SimpleNamespace(classes=("a", "b"), schema=SimpleNamespace(names=("x",)))
    none = Ledger(np.zeros((0, 1), bool), np.zeros((0, 1), bool), np.zeros(0))
    given_nothing = Answers(np.zeros(0, np.int32), np.zeros((0, 2)), none)
    assert bytes(csv_lines(forest, {}, given_nothing)) == b""


@pytest.mark.parametrize("share", [0.0, 4.9e-7, 5.1e-7, 0.1234565, 0.9999994, 0.9999996, 1.0])
def test_shares_have_six_digits(share):
    forest = SimpleNamespace(classes=("a",), schema=SimpleNamespace(names=("x",)))
    one = Ledger(np.zeros((1, 1), bool), np.zeros((1, 1), bool), np.zeros(1))
    raw = bytes(csv_lines(forest, {}, Answers(np.zeros(1, np.int32), np.array([[share]]), one)))
    assert raw == f"a,0,,{round(share, 6):.6f}\n".encode()
