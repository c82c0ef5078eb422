"""A correlation matrix.

Few cells have their values written; of many, those below 0 are marked by a minus.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_cov("~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
