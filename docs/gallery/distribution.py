"""A distribution function.

With its noise band, and that for the population.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_hist("~ disea", rows, codebook=book, eps=0.02)
ax = fit.plot_cdf()
