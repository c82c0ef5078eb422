"""The fit beside that of an independent engine, mbi, on the same measurements; needs mbi."""

import warnings
from itertools import combinations

import numpy as np
import pytest

from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.postprocess.residuals import components, summed

SIZES = (3, 2, 4, 3)
EVERY = tuple(range(len(SIZES)))
SD = 8.0


def measured(terms):
    """Noisy components of a table of 5,000 rows in which the variables depend on each other."""
    generator = np.random.default_rng(3)
    table = generator.gamma(0.4, 1.0, SIZES)
    table *= 5_000 / table.sum()
    tables = {(): np.array(table.sum())}
    for part in components(terms)[1:]:
        counts = summed(table, EVERY, part)
        tables[part] = centred_table(counts + SD * generator.standard_normal(counts.shape))
    return Residuals(SIZES, tables, {part: SD if part else 0.0 for part in tables})


def squares(released, table_of):
    """The sum of squares that least squares makes small, in units of the noise variance."""
    distance = (
        centred_table(table_of(part)) - table for part, table in released.tables.items() if part
    )
    return sum(float((difference**2).sum()) for difference in distance) / SD**2


@pytest.mark.slow
@pytest.mark.parametrize("terms", [[(0, 1), (1, 2), (2, 3)], list(combinations(EVERY, 2))])
def test_least_squares_is_that_of_mbi(terms):
    mbi = pytest.importorskip("mbi")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    released = measured(terms)

    def query(factor):
        values = factor.values
        for axis in range(values.ndim):
            values = values - values.mean(axis=axis, keepdims=True)
        return jnp.ravel(values)

    names = [f"v{i}" for i in EVERY]
    measurements = [
        mbi.LinearMeasurement(
            jnp.asarray(table.ravel()), tuple(names[i] for i in part), stddev=SD, query=query
        )
        for part, table in released.tables.items()
        if part
    ]
    step = SD**2 / (len(measurements) * released.n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = mbi.estimation.MirrorDescent(stepsize=step).estimate(
            mbi.Domain(names, SIZES), measurements, known_total=released.n_rows, iters=5_000
        )

    def projected(term):
        factor = reference.project(tuple(names[i] for i in term))
        return np.asarray(factor.values, dtype=np.float64)

    model = fit_model(released, structure_of(terms, SIZES), penalty=1e-3, most_steps=5_000)
    assert squares(released, model.table) <= squares(released, projected) * 1.01 + 0.01
    for term in terms:
        difference = np.abs(model.table(term) - projected(term)).sum() / 2
        assert difference < 0.005 * released.n_rows
