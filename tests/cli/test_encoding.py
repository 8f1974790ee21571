"""Text of any encoding is read as if it were UTF-8."""

import gzip
import io
import json

import pytest
from click.testing import CliRunner

from budgetforest import InvalidData
from budgetforest.cli import main
from budgetforest.files import encoding
from budgetforest.files.encoding import as_utf8

TRAIN = ("--target", "größe", "--method", "paper", "--max-trees", "1", "--force")
ROWS = "a,stadt,größe\n" + "".join(
    f"{i % 10},{'Köln' if i % 3 else 'Nîmes'},{'groß' if i % 10 > 4 else 'klein'}\n" for i in range(200)
)


def run(*arguments, **options):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False, **options)


def ok(*arguments, **options):
    done = run(*arguments, **options)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows in UTF-8, their model and its answers."""
    folder = tmp_path_factory.mktemp("encoding")
    (folder / "rows.csv").write_text(ROWS, encoding="utf-8")
    ok("train", folder / "rows.csv", *TRAIN, "--out", folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", ["latin-1", "CP1252", "utf-16", "utf-16-be", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("way", ["file", "gz", "pipe"])
def test_every_command_reads_other_encodings(folder, tmp_path, name, way):
    raw = ROWS.encode(name)
    path = tmp_path / ("rows.csv.gz" if way == "gz" else "rows.csv")
    path.write_bytes(gzip.compress(raw) if way == "gz" else raw)
    data = "-" if way == "pipe" else path
    given = {"input": raw} if way == "pipe" else {}
    said, model = ("--encoding", name), tmp_path / "m.safetensors"

    trained = json.loads(ok("train", data, *TRAIN, *said, "--out", model, "--json", **given))
    assert (trained["rows"], trained["classes"]) == (200, ["groß", "klein"])
    template = ("costs", "template")
    assert ok(*template, data, *said, **given) == ok(*template, folder / "rows.csv")
    for command in (("predict", model), ("curve", model)):
        assert ok(*command, data, *said, **given) == ok(*command, folder / "rows.csv")
    report = ok("report", model, data, *said, "--out", tmp_path / "r.html", "--json", **given)
    assert json.loads(report)["rows"] == 200


def test_validation_rows_have_the_same_encoding(folder, tmp_path):
    (tmp_path / "rows.csv").write_bytes(ROWS.encode("cp1252"))
    beside = ("--validation", tmp_path / "rows.csv", "--encoding", "cp1252")
    ok("train", tmp_path / "rows.csv", *TRAIN, *beside, "--out", tmp_path / "m.safetensors")


def test_lines_are_those_of_the_file(folder, tmp_path):
    (tmp_path / "odd.csv").write_bytes(ROWS.replace("\n4,", "\nvierßig,", 1).encode("utf-16"))
    done = run("predict", folder / "model.safetensors", tmp_path / "odd.csv", "--encoding", "utf-16")
    assert done.exit_code == 1
    assert "odd.csv, line 6: 'a' is 'vierßig'" in done.stderr


@pytest.mark.parametrize(
    ("raw", "options", "code", "message"),
    [
        (ROWS.encode("latin-1"), (), 1, "is not UTF-8 ('a,stadt,größe' if it were Latin-1); say what it is"),
        (ROWS.encode("latin-1"), (), 1, "--encoding latin-1, or convert the file: iconv"),
        (ROWS.encode("utf-16"), (), 1, "try --encoding utf-16"),
        (ROWS.encode("utf-16-le"), ("utf-16",), 1, "does not start with BOM; try --encoding utf-16-le"),
        (ROWS.encode(), ("ascii",), 1, "line 1: the bytes c3 are no ascii; give another --encoding"),
        (ROWS.encode().replace(b"\n7", b"\n\x81", 1), ("cp1252",), 1, "line 9: the bytes 81 are no cp1252"),
        (ROWS.encode("utf-16")[:-1], ("utf-16",), 1, "line 201: the bytes 0a are no utf-16"),
        (ROWS.encode("latin-1"), ("utf-16",), 1, "line 1: the bytes f6 df are no utf-16"),
        (ROWS.encode(), ("latin-l",), 2, "got 'latin-l': did you mean 'latin' or"),
        (ROWS.encode(), ("base64",), 2, "encoding must be one that Python knows, as latin-1, cp1252 or"),
        (ROWS.encode(), ("a\0b",), 2, "encoding must be one that Python knows"),
    ],
)
def test_a_wrong_encoding_is_refused_with_a_hint(tmp_path, raw, options, code, message):
    (tmp_path / "rows.csv").write_bytes(raw)
    said = ("--encoding", *options) if options else ()
    done = run("train", tmp_path / "rows.csv", *TRAIN, *said, "--out", tmp_path / "m.safetensors")
    assert done.exit_code == code
    assert message in done.stderr.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "shift_jis", "gb18030", "cp1252"])
def test_pieces_of_any_size_give_the_same_text(monkeypatch, codec):
    word = {"shift_jis": "語", "gb18030": "語"}.get(codec, "Ämter")
    text = "".join(f"{i},{word}\n" for i in range(50))
    for size in (1, 3, 7, 1 << 20):
        monkeypatch.setattr(encoding, "CHUNK", size)
        assert as_utf8(io.BytesIO(text.encode(codec)), codec, "rows").read().decode() == text
        broken = io.BytesIO(text.encode(codec) + b"\x81")
        with pytest.raises(InvalidData, match="rows, line 51: the bytes 81 are no"):
            as_utf8(broken, codec, "rows").read()
