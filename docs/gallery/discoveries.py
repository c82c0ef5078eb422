"""Discoveries at a false discovery rate.

Sorted p-values of a regression and the line of Benjamini and Hochberg.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_lm("mdvis ~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.fdr(q=0.1).plot()
