"""A table of two factors.

Proportions by cell. Wide bars are noise intervals, thin bars confidence intervals.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_table("~ hlthp + idp", rows, codebook=book, eps=0.02)
ax = fit.plot()
