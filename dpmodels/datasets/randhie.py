"""The RAND Health Insurance Experiment: 20,190 person-years, 10 variables."""

from __future__ import annotations

from importlib import resources
from typing import Final

import pandas as pd

from dpmodels.codebook import Codebook

# Rows of a person: the experiment enrolled families for three or five years, a row for each. The
# table has no ids of persons.
MOST_YEARS: Final = 5


def load_randhie() -> pd.DataFrame:
    """Return the table that statsmodels ships, 20,190 rows.

    Returns
    -------
    DataFrame
        Columns ``mdvis lncoins idp lpi fmde physlm disea hlthg hlthf hlthp``.

    References
    ----------
    .. [1] Cameron, A. C. and Trivedi, P. K. (2005). "Microeconometrics:
       Methods and Applications." Cambridge University Press.
    """
    from statsmodels.datasets.randhie import load_pandas

    table: pd.DataFrame = load_pandas().data
    return table


def randhie_codebook() -> Codebook:
    """Return its codebook.

    The bounds are round numbers that follow from the variables' definitions
    and from the experiment's design, not from the rows: coinsurance is at
    most 100 %, incentive payments and expenditure limits are a few thousand
    dollars at most, a year has 100 doctor's visits or fewer for all but a
    handful of people, whose counts are clipped.

    Examples
    --------
    >>> from dpmodels.datasets import randhie_codebook
    >>> print(randhie_codebook().select(["mdvis", "idp"]))
    variable  type     declared  unit    label
    mdvis     integer  0 to 100  visits  outpatient visits to a doctor in a year
    idp       integer  0 to 1            individual deductible plan
    """
    with resources.as_file(resources.files(__package__) / "randhie.json") as path:
        return Codebook.load(path)
