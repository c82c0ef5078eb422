"""Tables and regressions with their rows, bound without a verb."""

from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.design.private import PrivateDesign
from dpmodels.design.regression import joint_design
from dpmodels.formula.response import two_sided
from dpmodels.formula.tally import Tally


def private_cells(formula, data, codebook, tallies: tuple[Tally, ...]) -> PrivateCells:
    """Bind tables to data."""
    return unbound_cells(formula, codebook, tallies).bind(data)


def private_regression(formula, data, codebook, *, weights=None, **options) -> PrivateDesign:
    """Bind a two-sided formula to data; options of :func:`joint_design`."""
    regression = two_sided(formula, codebook, excluded=() if weights is None else (str(weights),))
    return joint_design(regression, codebook, weights=weights, **options).bind(data)
