"""A query against a real Postgres server, started here: its rows are those of the CSV it was filled from."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from budgetforest import InvalidData
from budgetforest.files.delimited import Delimited
from budgetforest.files.learning import Wish, learn_rows
from budgetforest.files.typed import open_query

duckdb = pytest.importorskip("duckdb")

CSV = """id,age,pressure,mri,sex,state
a,63,140.3,0.25,f,ill
b,41,,-1.5,m,well
c,50,120.7,0.1,,well
d,72,150.1,2.125,m,
"""
TABLE = """
create type sexes as enum ('f', 'm');
create table patients (id text, age int, pressure numeric(6, 1), mri float, sex sexes, state varchar(9));
copy patients from stdin csv header;
"""


def program(name):
    """A program of the server, which distributions keep out of the way."""
    places = [str(place) for place in Path("/usr/lib/postgresql").glob("*/bin")]
    return shutil.which(name, path=os.pathsep.join([*places, os.environ["PATH"]]))


def as_owner(*command, **options):
    """Run a command of the server; it refuses to run as root."""
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    return subprocess.run([*user, *map(str, command)], check=True, timeout=120, **options)


@pytest.fixture(scope="module")
def server():
    """The address of a server with a table of patients."""
    if program("initdb") is None:
        pytest.skip("there is no Postgres server: apt-get install postgresql")
    try:
        duckdb.connect().execute("install postgres; load postgres")
    except duckdb.Error as error:
        pytest.skip(f"DuckDB cannot fetch its Postgres extension: {error}")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "cwd": folder}
    as_owner(program("initdb"), "-D", folder / "data", "-A", "trust", "-U", "postgres", "-N", **quiet)
    control = (program("pg_ctl"), "-D", folder / "data", "-w")
    as_owner(*control, "-l", folder / "log", "-o", f"-p {port} -k {folder} -F", "start", **quiet)
    address = f"postgres://postgres:secret@localhost:{port}/postgres"
    try:
        as_owner(program("psql"), address, "-c", TABLE, input=CSV.encode(), **quiet)
        yield address
    finally:
        as_owner(*control, "-m", "immediate", "stop", **quiet)
        shutil.rmtree(folder)


def test_a_table_gives_the_rows_of_the_csv(server, tmp_path):
    (tmp_path / "patients.csv").write_text(CSV)
    plain = learn_rows(Delimited(tmp_path / "patients.csv"), Wish("state", ("id",)))
    other = learn_rows(open_query("select * from patients order by id", server), Wish("state", ("id",)))
    assert other.table.schema == plain.table.schema
    assert np.array_equal(other.table.matrix, plain.table.matrix, equal_nan=True)
    assert other.labels.tolist() == plain.labels.tolist() == ["ill", "well", "well"]
    assert other.unlabelled == 1


def test_a_failure_names_the_reason_and_no_password(server):
    with pytest.raises(InvalidData, match="patientz does not exist"):
        open_query("select * from patientz", server)
    with pytest.raises(InvalidData, match="unknown") as refused:
        open_query("select 1", server.replace("/postgres", "/unknown"))
    assert "secret" not in str(refused.value)


def test_nothing_can_be_written(server):
    with pytest.raises(InvalidData, match="read-only"):
        open_query("delete from patients", server)
