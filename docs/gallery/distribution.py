"""A distribution function.

With its noise band and its confidence band.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_hist("~ disea", rows, codebook=book, eps=0.02)
ax = fit.plot_cdf()
