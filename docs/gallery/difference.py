"""A difference in means.

A t-test's difference with both intervals, held against 0.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_ttest("mdvis ~ idp", rows, codebook=book, eps=0.5)
ax = fit.plot()
