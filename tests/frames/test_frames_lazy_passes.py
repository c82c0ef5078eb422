"""Passes over lazy tables: how they are compared, and how often rows are read."""

import numpy as np
import polars as pl
import pytest

import dpmodels as dp
from dpmodels.design import parts, rows
from dpmodels.digest import release_digest
from dpmodels.errors import FrameError
from dpmodels.frames import sql_table
from dpmodels.frames.protocol import Coded, coded, decoded
from dpmodels.mechanisms.covariance import rounds

N = 3_000
BOOK = dp.codebook(x=(0, 1), y=(0, 1))
KEY = bytes(range(16))


def table():
    rng = np.random.default_rng(2)
    return pl.DataFrame({"x": rng.normal(0.5, 0.05, N), "y": rng.normal(0.6, 0.05, N)})


def checksum(cells, counts=None):
    counts = np.ones(len(cells), dtype=np.int64) if counts is None else np.array(counts)
    return sql_table._checksum(cells, counts, KEY)


@pytest.mark.parametrize(
    "entries", [np.array(["a", "bb", "", "3"], object), np.array([1, -2, 3, 4]), np.arange(4) / 3]
)
def test_cells_of_a_dictionary_have_the_checksum_of_the_cells(entries):
    cells = coded(entries, np.array([0, 3, 1, 1, 4, 2, 0]))
    counts = [1, 2, 1, 5, 7, 1, 1]
    assert isinstance(cells, Coded)
    assert checksum(cells, counts) == checksum(decoded(cells), counts)
    assert checksum(cells, counts) != checksum(cells)


def test_a_checksum_is_of_cells_in_any_order_and_of_all_their_bits():
    cells = np.random.default_rng(3).normal(size=500)
    assert checksum(cells) == checksum(cells[::-1])
    for bit in (0, 31, 52, 63):
        words = cells.view(np.uint64).copy()
        words[7] ^= np.uint64(1) << np.uint64(bit)
        assert checksum(words.view(float)) != checksum(cells)
    assert checksum(np.array([0.0, np.nan])) == checksum(np.array([-0.0, -np.nan]))
    assert checksum(np.array([-1, 5])) == checksum(np.ma.array([-1, 5]))
    assert checksum(cells[:0]) == 0


@pytest.fixture
def readings(monkeypatch):
    """The lazy readings, and tables that take part in rounds that choose rows."""
    calls, read = [], rows.Rows._read
    monkeypatch.setattr(rows.Rows, "_read", lambda *args: calls.append(1) or read(*args))
    monkeypatch.setattr(rounds, "LARGE_TABLE", 1_000)
    monkeypatch.setattr(rounds, "FEWEST_ROWS", 300)
    return calls


def fitted(data):
    with dp.simulation(seed=4):
        fit = dp.dp_pca("~ x + y", data, codebook=BOOK, eps=1e4, delta=1e-6, mechanism="rounds")
    return fit.release


def test_lazy_rows_that_fit_are_read_once(readings):
    release = fitted(table().lazy())
    assert len(readings) == 1
    assert release.rows == N


def test_lazy_rows_that_do_not_fit_are_read_once_by_coins_and_once_in_full(readings, monkeypatch):
    for module in (rows, parts):
        monkeypatch.setattr(module, "MOST_BYTES", 16 * N - 1)
    release = fitted(table().lazy())
    assert len(readings) == 2
    # Coins are those of the positions, which this table gives in one order.
    assert release_digest(release) == release_digest(fitted(table()))


def test_lazy_rows_that_change_between_these_readings_end_the_release(readings, monkeypatch):
    for module in (rows, parts):
        monkeypatch.setattr(module, "MOST_BYTES", 16 * N - 1)

    def changed(batch):
        return batch.with_columns(
            x=pl.when(pl.int_range(pl.len()) < len(readings)).then(0.5).otherwise("x")
        )

    ledger = dp.Ledger(eps=2e4, delta=1e-5)
    lazy = table().lazy().map_batches(changed)
    with pytest.raises(FrameError, match="changed between two readings"):
        dp.dp_pca(
            "~ x + y", lazy, codebook=BOOK, eps=1e4, delta=1e-6, mechanism="rounds", ledger=ledger
        )
    assert len(ledger.entries) == 1
