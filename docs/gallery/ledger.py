"""How a budget was spent.

One bar for each release, from the total before it to the total after it.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
ledger = dp.Ledger(eps=2)
dp.dp_mean("mdvis ~ idp", rows, codebook=book, eps=0.5, ledger=ledger)
dp.dp_table("~ hlthp + idp", rows, codebook=book, eps=0.75, ledger=ledger)
dp.dp_quantile("~ disea", rows, codebook=book, eps=0.25, ledger=ledger)
ax = dp.plot_ledger(ledger)
