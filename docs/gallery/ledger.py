"""How a budget was spent.

One bar for each release, from the total before it to the total after it.
"""

from health_insurance import book, rows

import dpmodels as dp

ledger = dp.Ledger(eps=2)
dp.dp_mean("visits ~ plan", rows, codebook=book, eps=0.5, ledger=ledger)
dp.dp_table("~ health + plan", rows, codebook=book, eps=0.75, ledger=ledger)
dp.dp_quantile("~ diseases", rows, codebook=book, eps=0.25, ledger=ledger)
ax = dp.plot_ledger(ledger)
