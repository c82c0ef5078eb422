"""A table of two factors.

Shares of the rows by cell. Wide bars are noise intervals, thin ones hold sampling too.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_table("~ hlthp + idp", rows, codebook=book, eps=0.02)
ax = fit.plot()
