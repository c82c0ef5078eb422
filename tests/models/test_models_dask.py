"""Every verb on additive statistics takes Parquet files and a Dask data frame."""

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
from dask_cases import (
    BOOK,
    FRAME,
    PARTS,
    SECRET,
    VERBS,
    WORDS,
    assert_same,
    dask,
    dd,
    moments_of,
    refused,
    scattered,
    simulated,
)

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import FrameError
from dpmodels.frames import dask_rows, open_rows
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import clipped_moments, moments
from tests.private_rows import private_regression

# Dask's own warnings of numbers of rows, and those of loading code, must not pass.
pytestmark = pytest.mark.filterwarnings("error::UserWarning")


@pytest.fixture
def synchronous():
    """Partitions one after the other, in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rows in three Parquet files, in row groups of 200 rows."""
    folder = tmp_path_factory.mktemp("rows")
    for at in range(3):
        FRAME[at * 600 : at * 600 + 600].to_parquet(folder / f"{at}.parquet", row_group_size=200)
    return folder


@pytest.mark.product
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_the_same_as_in_memory(verb, folder):
    in_memory = simulated(verb, FRAME)
    for files in (folder, f"{folder}/[0-9].parquet"):
        assert simulated(verb, files) == in_memory
    with dask.config.set(scheduler="synchronous"):
        assert simulated(verb, scattered(6)) == in_memory


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_without_a_client_the_scheduler_of_dask_is_taken(scheduler):
    with dask.config.set(scheduler=scheduler):
        assert_same(moments_of(scattered(), row_norm="unit"), moments_of(FRAME, row_norm="unit"))


def test_clipped_and_weighted_rows(synchronous):
    def clipped(data):
        design = private_design("~ age + wage", data, BOOK)
        return clipped_moments(design, Lattice(18, 2), 4)

    def weighted(data):
        design = private_regression("wage ~ age", data, BOOK, weights="w")
        return moments(design, Lattice(20, 2))

    assert_same(clipped(scattered()), clipped(FRAME))
    assert_same(weighted(scattered()), weighted(FRAME))


@pytest.mark.product
def test_empty_partitions_and_no_rows(synchronous):
    late = scattered()
    assert_same(moments_of(late[late.w < 0.02]), moments_of(FRAME[FRAME.w < 0.02]))
    assert_same(moments_of(late[late.w < 0]), moments_of(FRAME[:0]))


def test_only_public_facts_go_out_and_only_integers_come_back(synchronous, monkeypatch):
    sent, back = [], []
    shipped, computed = dask_rows._shipped, dask_rows._computed
    monkeypatch.setattr(
        dask_rows, "_shipped", lambda measure: sent.append(shipped(measure)) or sent[-1]
    )
    monkeypatch.setattr(
        dask_rows,
        "_computed",
        lambda roots: (back.append(value) or value for value in computed(roots)),
    )
    moments_of(scattered()).cross()
    (recipe,) = sent
    for cell in (SECRET.encode(), FRAME["wage"][3].tobytes(), repr(FRAME["wage"][3]).encode()):
        assert cell not in recipe
    assert 1 <= len(back) <= -(-PARTS // 8)
    for sums in back:
        (exact,) = sums.exact
        assert exact.dtype == np.int64 or {type(cell) for cell in exact.ravel()} == {int}
        assert {type(number) for number in (*sums.counts, sums.n_rows, sums.checksum)} == {int}


@pytest.mark.product
def test_only_the_wanted_columns_are_read(synchronous, tmp_path, monkeypatch):
    scattered().to_parquet(tmp_path)
    recorded, bound = [], dask_rows.NativeRows

    def watched(part):
        recorded.append(tuple(part.columns))
        return bound(part)

    monkeypatch.setattr(dask_rows, "NativeRows", watched)
    VERBS["mean wage ~ sex"].ask(dd.read_parquet(tmp_path), codebook=BOOK)
    assert set(recorded) <= {("wage", "sex"), ("sex", "wage")}


def test_integers_beyond_64_bits_are_pythons():
    large = np.array([2**61, -(2**61), 3], dtype=object)
    first, two = (
        dask_rows.Sums((exact,), (rows,), rows, 2**127)
        for rows, exact in ((1, large), (2, np.array([0, 0, 4])))
    )
    narrow = dask_rows._added(first, two)
    assert narrow.exact[0].dtype == np.int64
    wide = dask_rows._total([narrow] * 3)
    assert wide.exact[0].tolist() == [3 * 2**61, -3 * 2**61, 21]
    assert {type(cell) for cell in wide.exact[0]} == {int}
    assert (wide.counts, wide.n_rows, wide.checksum) == ((9,), 9, 3 * 2**128)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda data: dp.dp_pca("~ aeg", data, codebook=BOOK, eps=1.0), "aeg"),
        (lambda data: open_rows(data).chunks(("age",), 9), "stay with its workers"),
        (lambda data: dp.dp_mean("age ~ 1", [data], codebook=BOOK, eps=1.0), "dataframe.concat"),
    ],
)
def test_what_cannot_be_added_up_is_refused_before_a_row_is_read(ask, says, synchronous):
    def exploding(part):
        raise AssertionError("a row was read")

    with pytest.raises(dp.errors.DPModelsError, match=says):
        ask(scattered().map_partitions(exploding, meta=FRAME[:0]))


@pytest.mark.parametrize(
    "part",
    [lambda: scattered().age, lambda: dask.delayed(FRAME), lambda: scattered().to_dask_array()],
)
def test_of_dask_only_a_data_frame_is_a_table(part):
    with pytest.raises(FrameError, match=r"only a DataFrame is a table: write series\.to_frame"):
        open_rows(part())


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("error", [OSError(SECRET), ValueError(SECRET), KeyError(SECRET)])
def test_what_loading_raises_or_warns_of_is_not_passed_on(scheduler, error):
    def failing(part):
        warnings.warn(SECRET, stacklevel=1)
        raise error

    data = scattered(2).map_partitions(failing, meta=FRAME[:0])
    with dask.config.set(scheduler=scheduler):
        # The number of rows is public, and is counted before anything is charged.
        spent, reported = refused(data, r"partition .* could not be computed.*Nothing was charged")
    assert spent.startswith("0.00 of 2.00")
    assert reported.__cause__ is None
    assert reported.__context__ is None


def test_a_damaged_row_group_ends_the_release_and_stays_charged(synchronous, tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet", row_group_size=100, compression="none")
    place = pq.read_metadata(tmp_path / "a.parquet").row_group(7).column(0)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    first = place.dictionary_page_offset or place.data_page_offset
    content[first : first + 40] = b"\xff" * 40
    (tmp_path / "a.parquet").write_bytes(bytes(content))
    for data, says in (
        (dd.read_parquet(tmp_path), "could not be computed"),
        (tmp_path, r"a\.parquet' is damaged"),
    ):
        spent, _ = refused(data, rf"{says}.*Nothing was released.*charged before")
        assert spent.startswith("1.00 of 2.00")


def test_files_that_are_gone_are_told_of(synchronous, tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    data = dd.read_parquet(tmp_path)
    (tmp_path / "a.parquet").unlink()
    refused(data, "could not be computed")


@pytest.mark.guarding
@pytest.mark.parametrize(("adjacency", "total"), [("replace", 2), ("add-remove", None)])
def test_progress_shows_no_private_number(adjacency, total, synchronous, monkeypatch):
    totals = []
    monkeypatch.setattr(
        dask_rows, "steps", lambda items, *, total, label: totals.append(total) or items
    )
    monkeypatch.setattr(dask_rows.os, "cpu_count", lambda: 2)
    dp.dp_hist("~ wage", scattered(), adjacency=adjacency, **WORDS)
    assert totals == [total]


def test_a_missing_column_is_told_of_and_no_cell_is_shown():
    source = open_rows(scattered())
    assert source.names == tuple(FRAME.columns)
    assert source.nrows == len(FRAME)
    assert SECRET not in repr(source)
    with pytest.raises(FrameError, match=r"'wgae' \(did you mean 'wage'"):
        source.chunks(("wgae",), 10)
