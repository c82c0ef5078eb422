"""``plot_ledger``: what a budget was spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.arguments import truth
from dpmodels.privacy import Ledger, hidden_by, verified
from dpmodels.privacy.spent import capacity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ledger(ledger: Ledger, *, ax: Axes | None = None, caption: bool = True) -> Axes:
    """Draw what a ledger was charged by each release, against its budget.

    Parameters
    ----------
    ledger : Ledger
        In memory or in a file; it is verified first.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    caption : bool
        Whether guarantee and neighbours stand under the picture.

    Returns
    -------
    matplotlib Axes
        A bar a charge, from what was spent before it to what was after, in eps or rho. Charges
        that nothing is known to have come of are hatched: they stay spent.

    Raises
    ------
    LedgerError
        If a line was changed.
    ArgumentError
        If it is no ledger.

    Examples
    --------
    >>> import dpmodels as dp
    >>> ledger = dp.Ledger(eps=2.0)
    >>> rows, cb = {"age": [20, 40, 60] * 900}, dp.codebook(age=(0, 100))
    >>> fit = dp.dp_mean("~ age", rows, codebook=cb, eps=0.5, ledger=ledger)
    >>> ax = dp.plot_ledger(ledger)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['1 dp_mean ~ age']
    """
    from dpmodels.plots.spending import spending

    register = verified(ledger).register().reset_index()
    after = register["total"].to_numpy(dtype=np.float64)
    hidden = hidden_by(ledger.guarantee, ledger.adjacency)
    under = f"Privacy of all together: {ledger.guarantee.describe()}; neighbours: {hidden}."
    return spending(
        np.column_stack([np.append(0.0, after)[:-1], after]),
        register["state"].tolist(),
        capacity(ledger.guarantee).amount,
        labels=[f"{line.charge} {line.label}".strip() for line in register.itertuples()],
        unit=ledger.spent.unit,
        ax=ax,
        caption=under if truth("caption", caption) else None,
    )
