"""Coefficients of a regression.

Changes over the public range of each term. Wide bars are what the privacy noise leaves
open, thin ones hold sampling too.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_lm("mdvis ~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
