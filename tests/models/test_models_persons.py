"""Whose rows are, everywhere rows come from: the same persons, places and refusals."""

import datetime as dt
import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask_cases import dask, dd

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.frames import dask_rows
from dpmodels.frames.persons import Persons

RNG = np.random.default_rng(11)
N = 900
FRAME = pd.DataFrame(
    {
        "id": pd.array(RNG.integers(0, 90, N), dtype="Int64"),
        "x": RNG.uniform(0, 1, N).round(6),
        "g": RNG.choice(["a", "b"], N),
    }
)
FRAME.loc[RNG.random(N) < 0.1, "id"] = pd.NA
BOOK = dp.codebook(x=(0, 1), g=["a", "b"])
WORDS = {"codebook": BOOK, "eps": 3.0, "person": "id"}
SECRET = "quokka-93117"


def parquet(folder, files):
    folder_of_files = folder / f"{files}"
    folder_of_files.mkdir()
    size = -(-N // files)
    for at in range(files):
        part = FRAME[at * size : (at + 1) * size]
        # What writes a file types its columns by its cells: whole numbers here, texts there.
        texts = part.assign(id=part["id"].astype("string"))
        (texts if at % 2 else part).to_parquet(folder_of_files / f"{at}.parquet")
    return folder_of_files


def csv(folder):
    FRAME.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


SOURCES = {
    "floats": lambda _: FRAME.astype({"id": float}),
    "objects": lambda _: FRAME.astype({"id": object}),
    "texts": lambda _: FRAME.astype({"id": "string"}),
    "dict": lambda _: {name: FRAME[name].to_numpy(object) for name in FRAME},
    "polars": lambda _: pl.from_pandas(FRAME),
    "arrow": lambda _: pa.Table.from_pandas(FRAME),
    "one file": lambda folder: parquet(folder, 1),
    "four files": lambda folder: parquet(folder, 4),
    "csv": csv,
    "dask": lambda _: dd.from_pandas(FRAME, npartitions=7, sort=False),
    "dask, texts": lambda _: dd.from_pandas(FRAME.astype({"id": "string"}), npartitions=3),
}


def mean(data, **words):
    with dp.simulation(seed=4), dask.config.set(scheduler="synchronous"):
        return dp.dp_mean("x ~ g", data, **{**WORDS, **words})


@pytest.mark.parametrize("words", [{"rows": 3, "subset": "x < 0.9"}, {"adjacency": "add-remove"}])
@pytest.mark.parametrize("source", SOURCES)
def test_all_sources_hold_the_same_persons(source, words, tmp_path):
    fit, mean_of_source = mean(FRAME, **words), mean(SOURCES[source](tmp_path), **words)
    assert mean_of_source.params.tolist() == fit.params.tolist()
    assert mean_of_source.release.rows == fit.release.rows


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_an_iterable_gives_the_first_rows_of_a_person(adjacency):
    words = {"rows": 2, "adjacency": adjacency}
    tables = [FRAME[at : at + 100] for at in range(0, N, 100)]
    first = FRAME.dropna(subset="id").groupby("id").head(2)
    assert mean(iter(tables), **words).params.tolist() == mean(first, **words).params.tolist()


def test_rows_without_a_person_move_nothing():
    mean_of_three, nobody = mean(FRAME, rows=3), FRAME["id"].isna()
    for changed in (
        FRAME[~nobody],
        FRAME.assign(x=FRAME["x"].where(~nobody, 1.0), g=FRAME["g"].where(~nobody, "b")),
        pd.concat([FRAME[nobody], FRAME, FRAME[nobody]]),
    ):
        changed_mean = mean(changed, rows=3)
        assert changed_mean.params.tolist() == mean_of_three.params.tolist()
        assert changed_mean.release.rows == mean_of_three.release.rows


@pytest.mark.parametrize(
    "scheduler", ["threads", pytest.param("processes", marks=pytest.mark.slow)]
)
def test_persons_of_dask_on_other_schedulers(scheduler):
    expected = mean(FRAME, rows=3)
    with dask.config.set(scheduler=scheduler, num_workers=2), dp.simulation(seed=4):
        data = dd.from_pandas(FRAME, npartitions=3, sort=False)
        assert dp.dp_mean("x ~ g", data, rows=3, **WORDS).params.tolist() == list(expected.params)


def test_nothing_of_a_person_is_in_names_keys_or_errors_of_dask():
    late = dd.from_pandas(FRAME.assign(id=SECRET), npartitions=2, sort=False)
    together = dask_rows.DaskRows(late).together("id", bytes(24))
    (root,) = together._roots(("id", "x"), lambda source: (np.zeros(1, int), 0))
    assert SECRET not in " ".join(map(str, root.__dask_graph__()))

    def failing(part):
        raise ValueError(part["id"].iloc[0])

    broken = late.map_partitions(failing, meta=late._meta)
    with pytest.raises(FrameError, match="could not be computed") as caught:
        mean(broken, rows=3)
    assert SECRET not in str(caught.value)


def test_a_column_is_said_before_a_row_is_read(tmp_path):
    ledger = dp.Ledger(eps=9, person="id")
    dates = tmp_path / "dates.parquet"
    pq.write_table(pa.table({"id": [dt.date(2020, 1, 1)], "x": [0.5], "g": ["a"]}), dates)
    for data, words, error, says in (
        (FRAME.drop(columns="id"), {}, FrameError, "no column 'id'"),
        (FRAME.rename(columns={"id": "idd"}), {}, FrameError, "did you mean 'idd'"),
        (dates, {}, FrameError, r"'id' is of type date32.*convert it, such as"),
        (iter([FRAME]), {}, FrameError, 'rows="mean" reads the data several times'),
        (FRAME, {"rows": 0}, ArgumentError, "rows=0"),
        (FRAME, {"rows": 2.5}, ArgumentError, "rows=2.5"),
        (FRAME, {"person": 3}, ArgumentError, "person=3"),
    ):
        with pytest.raises(error, match=re.compile(says)):
            dp.dp_mean("x ~ g", data, ledger=ledger, **{**WORDS, **words})
    assert ledger.entries == ()


def test_one_person_and_all_different():
    single_person, all_ = FRAME.assign(id=1), FRAME.assign(id=range(N))
    assert mean(single_person, rows=3).release.rows == 3
    assert mean(all_, rows=1).release.rows == N
    by_row = mean(FRAME, person=False)
    assert by_row.release.adjacency.unit == "one row"
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ x", all_, codebook=BOOK, budget=dp.ZCDP(1e9), person="id", rows=1)
    assert fit.params.item() == pytest.approx(FRAME["x"].mean(), abs=1e-3)


def test_persons_of_a_mixed_column_are_those_of_canonical_ids():
    ids = [1, 1.0, "1", True, "1.0", "p", b"p", None, [1], ""] * 50
    data = {"id": ids, "x": [0.5] * 500, "g": ["a"] * 500}
    assert mean(data, rows=1).release.rows == 4  # 1, 1.0, True and p


def test_the_person_may_be_a_variable_of_the_formula():
    data = {"x": [0.25, 0.75] * 300, "g": ["a"] * 600}
    fit = mean(data, person="x", rows=4)
    assert fit.release.rows == 8
    assert fit.release.adjacency.person == "x"


@pytest.mark.parametrize("rows", [1, "mean"])
def test_the_person_may_be_all_that_is_read_of_a_cluster(rows):
    """What workers receive about whose rows are stands beside the column, not in its place."""
    frame = pd.DataFrame({"age": [20, 30, 40, 50] * 60})
    words = {"codebook": dp.codebook(age=(0, 100)), "eps": 1e3, "person": "age", "rows": rows}
    with dask.config.set(scheduler="synchronous"):
        for data in (frame, dd.from_pandas(frame, npartitions=3, sort=False)):
            fit = dp.dp_mean("~ age", data, mechanism="geometric", **words)
            # Noise of 0.1 in a mean: false alarms below 1e-12.
            assert fit.params.iloc[0] == pytest.approx(35, abs=5)


def test_the_number_of_persons_is_counted_once_and_never_where_it_is_private(monkeypatch):
    read, original = [], dp.frames.persons.Persons.count
    monkeypatch.setattr(
        dp.frames.persons.Persons,
        "count",
        lambda *words: read.append(1) or original(*words),
    )
    mean(FRAME, rows=2)
    assert len(read) == 1
    ledger = dp.Ledger(eps=0.1, adjacency="add-remove", person="id")
    with pytest.raises(dp.errors.LedgerError):
        mean(FRAME, rows=2, adjacency="add-remove", ledger=ledger)
    assert len(read) == 1


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_levels_of_persons_add_up_at_a_cluster(adjacency):
    """The hundreds of rows of one person make no level: false alarms below 1e-6, by delta."""
    towns = ["a"] * 500 + ["b", "c"] * 60
    frame = pd.DataFrame({"id": [7] * 500 + list(range(100, 220)), "town": towns})
    words = {"eps": 50.0, "delta": 1e-7, "person": "id", "rows": 1, "adjacency": adjacency}
    with dask.config.set(scheduler="synchronous"):
        for data in (frame, dd.from_pandas(frame, npartitions=4, sort=False)):
            assert dp.dp_levels("~ town", data, **words).codebook["town"].levels == ("b", "c")


def test_a_file_that_changes_while_persons_are_counted_is_not_charged(tmp_path, monkeypatch):
    """It said that the ledger had been charged, and it had not."""
    path, counted = tmp_path / "rows.csv", Persons.count
    path.write_text("id,x,y\n1,.5,.5\n2,.5,.5\n")

    def touched(*words):
        os.utime(path, (1, 1))
        counted(*words)

    monkeypatch.setattr(Persons, "count", touched)
    ledger = dp.Ledger(eps=1.0, delta=1e-6, person="id", rows=1)
    words = {"eps": 1.0, "delta": 1e-6, "person": "id", "rows": 1, "ledger": ledger}
    with pytest.raises(FrameError, match=r"changed or replaced .*\. Nothing was charged$"):
        dp.dp_pca("~ x + y", path, codebook=dp.codebook(x=(0, 1), y=(0, 1)), **words)
    assert ledger.charges == 0
