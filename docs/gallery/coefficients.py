"""Coefficients of a regression.

Wide bars are noise intervals, thin bars confidence intervals.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_lm("mdvis ~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
