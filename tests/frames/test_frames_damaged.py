"""Damaged tables give an error of the package or a release, and never quote a cell."""

import traceback
import warnings
from random import Random

import damaged
import pyarrow as pa
import pytest

import dpmodels as dp
from dpmodels.errors import DPModelsError
from dpmodels.frames.convert import arrow_cells

BOOK = dp.codebook(a=(0, 1), g=["x", "y"], d=dp.Date("2001-01-01", "2001-12-31"))
CALLS = (
    lambda data: dp.dp_mean("a ~ g", data, codebook=BOOK, eps=1.0),
    lambda data: dp.dp_table("~ g", data, codebook=BOOK, eps=1.0, person="id", rows=1),
    lambda data: dp.dp_levels("~ g", data, codebook=BOOK, eps=1.0, delta=1e-6),
)


def fails(seed: int, folder) -> str:
    """Return what else came of a table than an error of the package or a release."""
    rng = Random(seed)
    make = damaged.CONTAINERS[seed % len(damaged.CONTAINERS)]
    call = rng.choice(CALLS)
    try:
        data = make(rng, folder)
    except Exception:  # A library refuses to hold such cells
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", dp.errors.BudgetWarning)
            call(data)
    except DPModelsError as error:
        return "" if "quokka" not in str(error) else f"{seed} {make.__name__}: quotes a cell"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{seed} {make.__name__}: {type(error).__name__} at {where.filename}:{where.lineno}"
    return ""


def raised(seeds, folder) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [text for seed in seeds if (text := fails(seed, folder))]


@pytest.mark.product
def test_damaged_tables_give_errors_of_the_package(tmp_path):
    assert raised(range(200), tmp_path) == []


@pytest.mark.product
def test_damaged_tables_are_both_released_and_refused(tmp_path):
    """Or the test above would be of one of the two alone."""
    released = set()
    for seed in range(200):
        rng = Random(seed)
        make = damaged.CONTAINERS[seed % len(damaged.CONTAINERS)]
        call = rng.choice(CALLS)
        try:
            data = make(rng, tmp_path)
            call(data)
        except Exception:
            released.add((make.__name__, False))
        else:
            released.add((make.__name__, True))
    assert len({name for name, value in released if value}) >= 8
    assert len({name for name, value in released if not value}) >= 5  # No type in memory refuses


def test_an_index_outside_of_a_dictionary_is_missing():
    codes = pa.array([0, 1, 7, -3, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y"]), safe=False)
    assert arrow_cells(column).tolist() == ["x", "y", None, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(200, 10_200, 1_000))
def test_ten_thousand_damaged_tables_give_errors_of_the_package(start, tmp_path):
    assert raised(range(start, start + 1_000), tmp_path) == []
