"""A histogram.

Counts by bin with their noise intervals.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_hist("~ disea", rows, codebook=book, eps=0.5)
ax = fit.plot()
