"""Tables of the papers: simulated shapes, and the real ones where they are."""

import math

import numpy as np
import pytest

from dpmodels.datasets.papers import (
    NEAR_OPTIMAL_VARIANCES,
    READERS,
    indicator_rows,
    near_optimal_rows,
    paper_table,
    zipf_rows,
)
from dpmodels.errors import ArgumentError


def test_zipf_rows_have_the_lengths_of_their_law():
    rows = zipf_rows(5, rows=20_000)
    lengths = np.linalg.norm(rows, axis=1)
    bins = np.log2(lengths) + 4
    np.testing.assert_allclose(bins, np.rint(bins), atol=1e-12)
    share = np.bincount(np.rint(bins).astype(int), minlength=5)[1:] / len(rows)
    weights = np.arange(1.0, 5) ** -3
    # Five standard deviations of a share; the seed is fixed.
    np.testing.assert_allclose(share, weights / weights.sum(), atol=5 * 0.5 / np.sqrt(20_000))


def test_near_optimal_rows_lie_in_the_ball_and_have_the_variances():
    rows = near_optimal_rows(20_000)
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
    values = np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1]
    assert (values <= np.array(NEAR_OPTIMAL_VARIANCES) * 1.1).all()
    assert values[:2].sum() > 0.85 * values.sum()


def test_the_same_seed_gives_the_same_rows():
    for value, again in (
        (zipf_rows(3, 50), zipf_rows(3, 50)),
        (near_optimal_rows(50), near_optimal_rows(50)),
        (indicator_rows(4, 50)[0], indicator_rows(4, 50)[0]),
    ):
        np.testing.assert_array_equal(value, again)


@pytest.mark.parametrize("name", READERS)
def test_a_simulated_table_has_the_shape_of_the_real_one(name):
    table = paper_table(name, rows=40, folder="nowhere")
    assert table.name == f"simulated, shape of {name}"
    assert table.rows.shape == (40, READERS[name][2][1])
    assert set(np.unique(table.label)) <= {0, 1}
    assert list(table.codebook) == list(table.columns)


@pytest.mark.product
@pytest.mark.parametrize("name", sorted(READERS, key=lambda name: math.prod(READERS[name][2])))
def test_a_real_table_is_coded_within_its_bounds(name, local_data):
    file, _, shape, _ = READERS[name]
    if not (local_data / file).exists():
        pytest.skip(f"{file} is not in the data folder")
    table = paper_table(name, folder=local_data)
    assert table.rows.shape == shape
    assert table.rows.min() >= 0
    assert table.rows.max() <= 1
    assert 0 < table.label.mean() < 1


def test_another_name_is_refused():
    with pytest.raises(ArgumentError, match="kddcup99"):
        paper_table("iris")
