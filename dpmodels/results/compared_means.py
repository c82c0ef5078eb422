"""Means of groups held against each other: post-processing of one release."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.inference.adjusted import adjusted, simultaneous
from dpmodels.inference.differences import difference
from dpmodels.inference.equal_means import equal_means

if TYPE_CHECKING:
    from dpmodels.inference.means import GroupMoments
    from dpmodels.results.call import TableCall

# A choice: each pair is a search for a p-value and for the ends of an interval.
MOST_PAIRS = 1_000


def pairs_of_means(
    moments: GroupMoments, facts: TableCall, adjust: str, level: float
) -> pd.DataFrame:
    """Return one row a pair of groups, the first less the second."""
    labels, width = facts.labels, facts.width
    pairs = list(combinations(range(len(labels)), 2))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise NotAvailable(
            f"contrasts() compares up to {MOST_PAIRS:,} pairs of groups, and here are "
            f"{len(pairs):,}: write 'y ~ group' with a factor of fewer levels, or 2 and more"
        )
    each = simultaneous(level, len(pairs), adjust)
    rows = []
    for pair in pairs:
        own = difference(moments, pair=pair)
        error = float(np.hypot(own.noise_sd, own.sampling_sd))
        ends = own.interval(each, population=True) if own.known else (np.nan, np.nan)
        name = f"{labels[pair[0]]} - {labels[pair[1]]}"
        numbers = (width * own.estimate, width * error, own.estimate / error, own.pvalue)
        rows.append((name, *numbers, width * ends[0], width * ends[1]))
    columns = ["contrast", "estimate", "std_error", "statistic", "p_value"]
    table = pd.DataFrame(rows, columns=[*columns, "conf_low", "conf_high"])
    table.loc[table["estimate"].isna(), "std_error"] = np.nan
    return table.assign(p_value=adjusted(table["p_value"].to_numpy(), adjust))


def one_way(moments: GroupMoments, facts: TableCall) -> tuple[pd.DataFrame, str, str]:
    """Return the test of equal means as one row, what its statistic is, and why there is none."""
    own = equal_means(moments)
    line = {
        "term": ":".join(facts.factors),
        "statistic": own.statistic,
        "df": own.df,
        "df_resid": own.df_resid,
        "p_value": own.pvalue,
        "ngroups": own.groups,
    }
    return pd.DataFrame([line]), "t" if own.groups == 2 else "F", own.reason
