"""Whatever happens to the workers of a cluster, the numbers are those of rows in memory."""

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from dask_cases import (
    BOOK,
    FRAME,
    PARTS,
    SECRET,
    VERBS,
    assert_same,
    dask,
    dd,
    distributed,
    moments_of,
    refused,
    scattered,
    simulated,
)

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.errors import FrameError
from dpmodels.frames import dask_rows

# Dask's own warnings of numbers of rows, and those of loading code, must not pass.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("error::UserWarning"),
    pytest.mark.filterwarnings("ignore:Creating scratch directories:UserWarning"),
]


@contextmanager
def two_workers():
    """A cluster of two worker processes on this machine.

    By default a worker that is dead 15 s after an earlier death is not started again.
    """
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client():
    """A client of two workers."""
    with two_workers() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_the_same_on_a_cluster(verb, client):
    assert simulated(verb, scattered()) == simulated(verb, FRAME)


def test_statistics_are_the_same_bit_for_bit(client, tmp_path):
    scattered().to_parquet(tmp_path / "rows")
    for data in (scattered(), dd.read_parquet(tmp_path / "rows"), tmp_path / "rows"):
        assert_same(moments_of(data), moments_of(FRAME))
    in_memory = moments_of(FRAME)
    assert_same(moments_of(scattered(frame=FRAME[:700])) + moments_of(FRAME[700:]), in_memory)


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path):
    folder, flag = str(tmp_path), str(tmp_path / "died")

    def dying(part, partition_info=None):
        if partition_info is None:
            return part
        suffix = f"-{os.getpid()}"
        before = sum(name.endswith(suffix) for name in os.listdir(folder))
        with open(os.path.join(folder, f"{partition_info['number']}{suffix}"), "w"):
            pass
        if before == 3 and not os.path.exists(flag):
            with open(flag, "w"):
                os._exit(1)
        return part

    data = scattered().map_partitions(dying, meta=FRAME[:0])
    assert_same(moments_of(data), moments_of(FRAME))
    assert os.path.exists(flag)
    # It had reported three partitions, which another worker computed anew.
    times = Counter(name.split("-")[0] for name in os.listdir(folder) if name != "died")
    assert len(times) == PARTS
    assert sum(count > 1 for count in times.values()) >= 2


CALLS = {
    "pca": lambda data, **words: dp.dp_pca("~ age + wage", data, delta=1e-6, **words),
    "lm": lambda data, **words: dp.dp_lm("wage ~ age", data, delta=1e-6, vcov="HC", **words),
    "glm": lambda data, **words: dp.dp_glm("sex ~ age + wage", data, **words),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_worker_that_is_killed_in_each_pass_changes_nothing(call, tmp_path, monkeypatch):
    killing, passes = str(tmp_path / "kill"), []

    def dying(part, partition_info=None):
        if partition_info is not None and partition_info["number"] == 3:
            try:
                os.unlink(killing)
            except FileNotFoundError:
                return part
            os._exit(1)
        return part

    summed = dask_rows.DaskRows.summed

    def killed(self, *args, **words):
        dask.base.get_scheduler().__self__.wait_for_workers(2, timeout=240)
        with open(killing, "w"):
            passes.append(0)
        sums = summed(self, *args, **words)
        assert not os.path.exists(killing)
        return sums

    words = {"codebook": BOOK, "eps": 10.0}
    with dp.simulation(seed=7):
        expected = release_digest(CALLS[call](FRAME, **words).release)
    monkeypatch.setattr(dask_rows.DaskRows, "summed", killed)
    data, ledger = scattered(7).map_partitions(dying, meta=FRAME[:0]), dp.Ledger(10.0, 1e-6)
    with two_workers() as cluster, distributed.Client(cluster), dp.simulation(seed=7):
        fit = CALLS[call](data, ledger=ledger, **words)
    assert len(passes) >= 7
    assert len(ledger.entries) == 1
    if call != "glm":  # Its minimiser sums floats
        assert release_digest(fit.release) == expected


def test_a_partition_that_fails_is_tried_again_and_counted_once(client, tmp_path):
    folder = str(tmp_path)

    def flaky(part, partition_info=None):
        if partition_info is not None and partition_info["number"] % 7 == 3:
            tries = os.path.join(folder, str(partition_info["number"]))
            with open(tries, "a") as file:
                file.write("x")
            if os.path.getsize(tries) < 3:
                raise OSError(SECRET)
        return part

    assert_same(moments_of(scattered().map_partitions(flaky, meta=FRAME[:0])), moments_of(FRAME))
    assert {(tmp_path / name).read_text() for name in os.listdir(folder)} == {"xxx"}


def test_a_partition_that_always_fails_says_nothing_of_its_rows(client):
    def failing(part):
        raise OSError(SECRET)

    data = scattered().map_partitions(failing, meta=FRAME[:0])
    spent, reported = refused(data, r"partition .* could not be computed.*Nothing was charged")
    assert spent.startswith("0.00 of 2.00")
    assert reported.__cause__ is None
    assert reported.__context__ is None


def test_how_large_the_rows_are_is_not_told(client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 B"}):
        moments_of(scattered()).cross()


def test_a_scheduler_that_is_gone_is_told_of_before_anything_is_charged():
    gone = distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0", silence_logs=50
    )
    lost_client = distributed.Client(gone, set_as_default=False)
    gone.close()
    with lost_client.as_current(), dask.config.set(scheduler=lost_client):
        spent, _ = refused(scattered(), "scheduler does not answer.*no ledger was charged")
    lost_client.close()
    assert spent.startswith("0.00 of 2.00")


def test_a_scheduler_that_goes_away_is_told_of(client):
    def slow(part):
        time.sleep(60)
        return part

    lost = distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0", silence_logs=50
    )
    lost_client = distributed.Client(lost, set_as_default=False)
    lost_client.loop.call_later(4.0, lambda: lost_client.loop.add_callback(lost.close))
    data = scattered().map_partitions(slow, meta=FRAME[:0])
    lost_connection = pytest.raises(FrameError, match="connection to the Dask scheduler was lost")
    with lost_client.as_current(), dask.config.set(scheduler=lost_client), lost_connection:
        moments_of(data).cross()
    lost_client.close()


# VmHWM and not ru_maxrss, which a process inherits from its parent.
CLIENT = """
import re
from pathlib import Path
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
import dpmodels as dp

BOOK = dp.codebook.uniform(list("abcd"), (0, 1))

def rows(seed, count):
    draws = np.random.default_rng(seed).random((count, 4))
    return pd.DataFrame(draws, columns=list("abcd"))

def peak(count):
    data = dd.from_map(rows, range(16), count=count, meta=rows(0, 1))
    dp.dp_cov("~ .", data, codebook=BOOK, eps=1.0, delta=1e-6)
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

if __name__ == "__main__":
    own = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with own, Client(own):
        small = peak(5_000)
        print(peak(300_000) - small)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is read")
def test_memory_of_the_client_does_not_grow_with_the_rows(tmp_path):
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    done = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True
    )
    # All rows together take 150 MB, one partition 10.
    assert int(done.stdout) < 8 * 1024


def test_rows_of_a_person_come_together(client):
    frame = FRAME.assign(id=[f"p{i % 90}" for i in range(len(FRAME))])
    words = {"codebook": BOOK, "eps": 2.0, "person": "id", "rows": 3}
    with dp.simulation(seed=7):
        expected = dp.dp_mean("age ~ sex", frame, **words).params.tolist()
    with dp.simulation(seed=7):
        assert dp.dp_mean("age ~ sex", scattered(5, frame), **words).params.tolist() == expected
