"""What a budget was spent on.

One bar a release, from what was spent before it to what was after.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
ledger = dp.Ledger(eps=2)
with dp.simulation(seed=1):
    dp.dp_mean("mdvis ~ idp", rows, codebook=book, eps=0.5, ledger=ledger)
    dp.dp_table("~ hlthp + idp", rows, codebook=book, eps=0.75, ledger=ledger)
    dp.dp_quantile("~ disea", rows, codebook=book, eps=0.25, ledger=ledger)
ax = dp.plot_ledger(ledger)
