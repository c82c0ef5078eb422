"""dp_levels: what is found of columns that nobody declared, hostile cells among them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError, LedgerError, NotAvailable
from dpmodels.models.bounds import dp_levels
from dpmodels.models.table import dp_table

WORDS = {"eps": 1.0, "delta": 1e-6}
HOSTILE = [
    "\x1b[31mred",
    "half \udc80",
    "x" * 101,
    "",
    "  ",
    "a\u202eb",
    "line\nbreak",
    float("inf"),
]


@pytest.fixture(scope="module")
def table():
    town = ["Ulm"] * 900 + ["Bonn"] * 500 + ["Rust"] * 3 + HOSTILE * 20
    code = np.resize([1, 2, 7, np.nan], len(town))
    return {"town": np.array(town, dtype=object), "code": code}


@pytest.fixture(scope="module")
def fit(table):
    with dp.simulation(seed=1):
        return dp_levels("~ town + code", table, **WORDS)


def test_frequent_levels_are_found_sorted_and_no_others(fit):
    assert fit.levels == {"town": ("Bonn", "Ulm"), "code": (1, 2, 7)}
    counts = fit.counts
    # Noise never exceeds the threshold.
    limit = fit.release.most
    assert abs(counts["town", "Ulm"] - 900) <= limit
    assert (counts > limit).all()


def test_the_codebook_joins_another_and_counts_go_on(fit, table):
    book = dp.codebook(age=(0, 100)) | fit.codebook
    assert list(book) == ["age", "town", "code"]
    assert book["code"] == dp.Categorical([1, 2, 7])
    counts = dp_table("~ town", table, codebook=book, eps=20.0).counts
    assert counts.to_numpy().tolist() == pytest.approx([500, 900], abs=3)


def test_a_level_that_has_no_rows_later_is_an_honest_zero(fit):
    table_fit = dp_table("~ town", {"town": ["Ulm"] * 300}, codebook=fit.codebook, eps=20.0)
    assert float(table_fit.counts.sel(town="Bonn")) <= 2


def test_a_given_codebook_keeps_the_rest_and_labels(table):
    book = dp.codebook(age=(0, 9), town=dp.Categorical(["x", "y"], label="where"))
    codebook = dp_levels("~ town", table, codebook=book, **WORDS).codebook
    assert codebook == dp.codebook(age=(0, 9), town=dp.Categorical(["Bonn", "Ulm"], label="where"))


def test_too_few_levels_are_said_and_left_out():
    fit = dp_levels("~ a", {"a": ["x"] * 500 + [f"own {i}" for i in range(50)]}, **WORDS)
    assert fit.levels == {"a": ("x",)}
    assert fit.codebook == dp.codebook()
    assert "codebook omits a: fewer than two levels were released" in str(fit.summary())
    nothing = dp_levels("~ a", {"a": list("abc")}, **WORDS)
    assert "(none found)" in str(nothing.summary())
    assert len(nothing.tidy()) == 0
    with pytest.raises(NotAvailable, match="no level was found"):
        nothing.plot()


def test_how_rare_a_level_may_be_is_public(fit):
    charged = dp_levels("~ a + b", {"a": ["x"], "b": ["y"]}, **WORDS)
    assert charged.found_with() == fit.found_with() == fit.glance()["found_with"].item()
    assert charged.release.most < fit.found_with(0.95) < fit.found_with(0.99)
    with pytest.raises(ArgumentError, match="probability="):
        fit.found_with(1.0)


def test_tables_and_intervals(fit, table):
    ends = fit.noise_int(0.999999)
    assert ends.loc[("town", "Ulm"), "lower"] <= 900 <= ends.loc[("town", "Ulm"), "upper"]
    text = str(fit.summary())
    assert "Bonn" in text
    assert "Rust" not in text
    assert "\x1b" not in text
    assert fit.tidy()["level"].tolist() == ["Bonn", "Ulm", "1", "2", "7"]
    assert "5 levels" in repr(fit)
    with pytest.raises(NotAvailable, match="do not identify"):
        fit.conf_int()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_streams_files_and_sites_give_the_same(table, tmp_path, relation):
    frame = pd.DataFrame({"code": table["code"]}).iloc[::-1]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    sites = {"A": frame[:700], "B": frame[700:]}
    recorded = []
    for source in (
        {"data": frame},
        {"data": tmp_path / "rows.csv"},
        {"data": iter([frame[:9], frame[9:]])},
        {"sites": sites, "protocol": "pooled"},
    ):
        with dp.simulation(seed=5):
            recorded.append(dp_levels("~ code", **source, **WORDS, adjacency=relation).counts)
    assert all(value.equals(recorded[0]) for value in recorded)


def test_a_ledger_is_charged_its_delta(table):
    ledger = dp.Ledger(2.0, 2e-6)
    dp_levels("~ town", table, **WORDS, ledger=ledger)
    assert ledger.entries[0].events[0].delta * 2 == pytest.approx(1e-6)
    dp_table("~ code", table, codebook=dp.codebook(code=[1, 2]), eps=0.5, ledger=ledger)
    with pytest.raises(LedgerError, match="the remaining delta is"):
        dp_levels("~ town", table, eps=0.1, delta=1.5e-6, ledger=ledger)
    assert len(ledger.entries) == 2


def test_columns_that_hold_no_levels_are_refused_for_free(tmp_path):
    ledger = dp.Ledger(1.0, 1e-6)
    dates = tmp_path / "dates.parquet"
    pq.write_table(pa.table({"born": np.array(["1990-05-01"], "M8[D]")}), dates)
    with pytest.raises(FrameError, match="neither numbers nor text"):
        dp_levels("~ born", dates, **WORDS, ledger=ledger)
    with pytest.raises(FrameError, match="no column 'towns'"):
        dp_levels("~ towns", {"town": ["a"]}, **WORDS, ledger=ledger)
    assert ledger.entries == ()


def test_what_is_saved_comes_back(fit, tmp_path):
    for number, value in enumerate((fit, dp_levels("~ a", {"a": ["x"]}, **WORDS))):
        path = tmp_path / f"{number}.nc"
        value.save(path)
        again = dp.load(path)
        assert str(again.summary()) == str(value.summary())
        assert again.codebook == value.codebook


def test_a_picture_has_a_bar_a_level(fit):
    ax = fit.plot(variable="code")
    assert len(ax.patches) == 3
    assert fit.plot().get_title(loc="left") == "town"


def test_rows_of_a_person_count_as_often_as_they_may():
    data = {"id": np.repeat(np.arange(300), 5), "town": np.repeat(["Ulm", "Bonn"], 750)}
    words = {"eps": 50.0, "delta": 1e-3, "person": "id"}
    for rows, n_rows in ((2, 2), (5, 5)):
        fit = dp_levels("~ town", data, rows=rows, **words)
        assert fit.counts.to_numpy() == pytest.approx([150 * n_rows] * 2, abs=3 * n_rows)
        assert "one person" in str(fit.summary())


def test_rows_outside_a_subset_do_not_count(table):
    book = dp.codebook(code=[1, 2, 7])
    words = {"codebook": book, "eps": 50.0, "delta": 1e-3}
    fit = dp_levels("~ town", table, subset="code == 2", **words)
    expected = (np.asarray(table["code"]) == 2) & (table["town"] == "Ulm")
    assert fit.counts["town", "Ulm"] == pytest.approx(expected.sum(), abs=3)


def test_a_session_finds_levels_and_goes_on(table):
    session = dp.session(table, dp.codebook(x=(0, 1)), eps=2.0, delta=1e-6)
    session.declare(session.levels("~ town", eps=1.0, delta=5e-7).codebook)
    assert session.table("~ town", eps=0.5, delta=0).counts.sizes["town"] == 2
    assert session.spent.amount == pytest.approx(1.5)


def test_a_draft_may_leave_open_what_is_to_be_found(table):
    words = {"eps": 50.0, "delta": 1e-3, "subset": "code == 2"}
    draft = dp.codebook.draft({"town": "object", "code": "int64"}).complete(code=[1, 2, 7])
    assert set(dp_levels("~ town", table, codebook=draft, **words).codebook) == {"town", "code"}


def test_what_travels_or_was_said_once_is_known_too(table):
    words = {"eps": 50.0, "delta": 1e-3, "subset": "code == 2"}
    book = dp.codebook(code=[1, 2, 7])
    fit = dp_levels("~ town", book.attach(pd.DataFrame(table)), **words)
    with dp.options(codebook=book):
        again = dp_levels("~ town", table, **words)
    assert fit.codebook == again.codebook
    whose = dp.codebook(code=[1, 2, 7], person="who")
    persons = {**table, "who": np.arange(len(table["town"]))}
    with dp.options(codebook=whose):
        assert dp_levels("~ town", persons, **words).release.adjacency.person == "who"
    assert fit.codebook["code"] == book["code"]


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_partitions_of_dask_add_up(table, relation):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"code": table["code"]})
    words = {**WORDS, "adjacency": relation}
    results = []
    for rows in (frame, dask.from_pandas(frame, npartitions=3)):
        with dp.simulation(seed=5):
            results.append(dp_levels("~ code", rows, **words).counts)
    assert results[0].equals(results[1])
