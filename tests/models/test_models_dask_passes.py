"""Mechanisms that read the rows several times read a Dask data frame as they read a frame."""

from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from dask_cases import BOOK, FRAME, SECRET, dask, dd, scattered
from verb_entry import ROWS
from verbs import FORMS

import dpmodels as dp
from dpmodels.design import private_design, worker_memory
from dpmodels.design.parts import Readings, Thinning
from dpmodels.digest import release_digest
from dpmodels.errors import FrameError
from dpmodels.frames import dask_rows
from dpmodels.models.linear import tune
from dpmodels.noise import seeded
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments, statistic

pytestmark = pytest.mark.filterwarnings("error::UserWarning")

FORMS_BY_ID = {
    form.id: form
    for form in FORMS
    if "protocol" not in form.options
    and form.verb.name != "dp_survey"
    and "height" not in form.formula
    # A partition has coins of its own, so that another half of the rows is tried.
    and form.verb.suffix != "-tuned"
}
PERSONS = {form.id: form for form in FORMS if "persons" in form.tests.split()}
CHANGED = r"changed between two passes.*data\.persist\(\).*ledger is charged before"


# Their minimiser sums floats, block by block: released numbers differ in the last bits.
FLOATS = ("objective", "output")


def released(form, data, **more):
    """What a release with a fixed seed is compared by, or the text of the refusal."""
    with dp.simulation(seed=7), dask.config.set(scheduler="threads", num_workers=2):
        try:
            release = form.ask(data, **more).release
        except dp.errors.DPModelsError as error:
            return str(error)
    is_rounded = release.info.name.partition(" ")[0] in FLOATS
    return release.coefficients if is_rounded else release_digest(release)


def assert_alike(first, two):
    if isinstance(first, str):
        assert first == two
    else:
        np.testing.assert_allclose(first, two, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS_BY_ID)
def test_every_verb_releases_the_same_integers_from_partitions(form):
    table, form = pd.DataFrame(ROWS), FORMS_BY_ID[form]
    late = dd.from_pandas(table, npartitions=3, sort=False)
    if "design" in form.options:
        with pytest.raises(dp.errors.DPModelsError, match="survey design"):
            form.ask(late)
        return
    assert_alike(released(form, late), released(form, table))


@pytest.mark.product
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("form", PERSONS)
def test_every_verb_releases_the_same_of_persons(form, relation):
    table, words = pd.DataFrame(ROWS), {"person": "id", "adjacency": relation}
    late = dd.from_pandas(table, npartitions=3, sort=False)
    for rows in (4, "mean"):
        of_late, of_table = (
            released(PERSONS[form], data, **words, rows=rows) for data in (late, table)
        )
        assert_alike(of_late, of_table)


def passes_of(monkeypatch):
    """The list to which the number of statistics of each distributed computation is appended."""
    passes, summed = [], dask_rows.DaskRows.summed

    def counted(self, columns, measure, *, count_public):
        sums = summed(self, columns, measure, count_public=count_public)
        passes.append(len(sums.exact))
        return sums

    monkeypatch.setattr(dask_rows.DaskRows, "summed", counted)
    return passes


@pytest.mark.product
def test_statistics_that_do_not_depend_on_each_other_are_one_pass(monkeypatch):
    passes = passes_of(monkeypatch)
    with dask.config.set(scheduler="synchronous"):
        dp.dp_table("~ sex", scattered(), codebook=BOOK, eps=1.0)
        assert passes == [1]
        passes.clear()
        # Counts of values beyond the bounds are read with the first pass.
        dp.dp_cov("~ age + wage", scattered(), codebook=BOOK, eps=1.0, delta=1e-6)
    assert passes[0] == 2
    assert set(passes[1:]) <= {1}


def drifting(pass_to_change, monkeypatch):
    """Rows of which a cell differs from a pass on, and the list of passes."""
    passes = passes_of(monkeypatch)

    def changed(part, partition_info=None):
        is_late = partition_info is not None and partition_info["number"] == 4
        if not (is_late and len(passes) >= pass_to_change):
            return part
        return part.assign(age=part["age"].where(part.index != part.index[3], 50.0))

    # Dask takes equal functions, here of lists that are empty at first, for one and the same.
    return scattered(6).map_partitions(changed, meta=FRAME[:0], token=uuid4().hex), passes


@pytest.fixture
def forgetful(monkeypatch):
    """Workers that have no memory for rows between passes."""
    monkeypatch.setattr(worker_memory, "_most_bytes", lambda: -1)


CALLS = {
    "pca": lambda data, **words: dp.dp_pca("~ age + wage", data, delta=1e-6, **words),
    "glm": lambda data, **words: dp.dp_glm("sex ~ age + wage", data, **words),
    "mean": lambda data, **words: dp.dp_mean("age ~ 1", data, **words),
}


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("call", CALLS)
def test_a_partition_that_changes_ends_the_release_after_the_charge(call, monkeypatch, forgetful):
    for number in (1, 2, 5)[: 1 if call == "mean" else 3]:
        ledger = dp.Ledger(eps=20.0, delta=1e-6)
        with monkeypatch.context() as patched, dask.config.set(scheduler="synchronous"):
            data, passes = drifting(number, patched)
            with pytest.raises(FrameError, match=CHANGED) as caught:
                CALLS[call](data, codebook=BOOK, eps=10.0, ledger=ledger)
        # The pass that reads the changed rows is the last one.
        assert len(passes) == number + 1
        assert len(ledger.entries) == 1
        assert ledger.describe().startswith("10.0")
        assert SECRET not in str(caught.value)


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("call", ["pca", "glm"])
def test_passes_see_the_rows_of_the_first_where_workers_keep_them(call, monkeypatch):
    """And where they have lost some, a partition that is the same now is enough."""
    words = {"codebook": BOOK, "eps": 10.0}
    with dask.config.set(scheduler="synchronous"):
        with dp.simulation(seed=7):
            expected = release_digest(CALLS[call](scattered(6), **words).release)
        data, passes = drifting(2, monkeypatch)
        with dp.simulation(seed=7):
            assert release_digest(CALLS[call](data, **words).release) == expected
        assert len(passes) > 5
        recalled = worker_memory.take
        for number, is_same in ((3, True), (4, False)):
            passes.clear()

            def forgotten(token, partition, number=number):
                return None if partition == number else recalled(token, partition)

            with monkeypatch.context() as patched, dp.simulation(seed=7):
                patched.setattr(statistic, "take", forgotten)
                if is_same:
                    assert release_digest(CALLS[call](data, **words).release) == expected
                    continue
                with pytest.raises(FrameError, match=CHANGED):
                    CALLS[call](data, **words)
                assert len(passes) == 3


@pytest.mark.parametrize("form", FORMS_BY_ID)
def test_rows_that_are_read_again_are_compared_with_the_first_pass(form, monkeypatch):
    """Only a request that reads them once takes no checksum."""
    checksums, require_same = {}, Readings.require_same

    def watched(self, n_rows, checksum):
        checksums.setdefault(self.salt, []).append(checksum)
        require_same(self, n_rows, checksum)

    monkeypatch.setattr(Readings, "require_same", watched)
    released(FORMS_BY_ID[form], dd.from_pandas(pd.DataFrame(ROWS), npartitions=3, sort=False))
    for of_rows in checksums.values():
        assert len(set(of_rows)) == 1
        assert of_rows[0] or len(of_rows) == 1


def test_chosen_rows_of_partitions_are_the_same_in_every_pass(monkeypatch):
    columns, lattice = ["age", "wage"], Lattice(20, 2)
    cells = np.random.default_rng(1).uniform(0, 50, (4_000, 2))
    late = scattered(5, pd.DataFrame(cells, columns=columns))
    design = private_design("~ age + wage", late, BOOK)
    thinned = design.of(design.rows.thinned(64, seeded(3)))
    thinned.require_passes()
    coins = Thinning(64, seeded(3)).by_partition()
    parts = [part.compute().to_dict("series") for part in late.to_delayed()]
    chosen = pd.concat(
        pd.DataFrame(coins(number).of({name: part[name].to_numpy() for name in columns}))
        for number, part in enumerate(parts)
    )
    expected = moments(private_design("~ age + wage", chosen, BOOK), lattice)
    readings, choose = [], Thinning.of
    monkeypatch.setattr(Thinning, "of", lambda *args: readings.append(1) or choose(*args))
    with dask.config.set(scheduler="synchronous"):
        for _ in range(2):
            exact, n_rows = moments(thinned, lattice).cross()
            assert (exact == expected.cross()[0]).all()
            assert n_rows == len(chosen)
    # They stay on the workers, each of which reads a partition once.
    assert len(readings) == 5
    # 7 standard deviations: a false alarm below 3e-12.
    assert abs(len(chosen) - 1_000) < 7 * np.sqrt(750)


def test_rows_that_are_not_as_many_as_were_counted_end_the_release(monkeypatch):
    read = []

    def growing(part, partition_info=None):
        if partition_info is None:
            return part
        read.append(partition_info["number"])
        return part if len(read) <= 3 else pd.concat([part, part])

    data = scattered(3).map_partitions(growing, meta=FRAME[:0])
    ledger = dp.Ledger(eps=2.0)
    failing = pytest.raises(FrameError, match="changed between two passes")
    with failing, dask.config.set(scheduler="synchronous"):
        dp.dp_mean("age ~ 1", data, codebook=BOOK, eps=1.0, ledger=ledger)
    assert ledger.describe().startswith("1.00 of 2.00")


@pytest.mark.product
def test_halves_of_a_split_are_all_rows_and_the_same_in_every_pass():
    words = {"codebook": BOOK, "eps": 50.0, "ridge": tune([300, 3000])}
    with dask.config.set(scheduler="synchronous"):
        fit = dp.dp_glm("sex ~ age", scattered(7), **words)
    assert fit.release.rows == len(FRAME)
    assert fit.release.tuning.chosen in (0, 1)
