"""Quantiles by group.

Confidence intervals count noise and sampling.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_quantile("disea ~ hlthp", rows, codebook=book, eps=1)
ax = fit.plot()
