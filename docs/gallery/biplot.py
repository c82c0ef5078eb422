"""Variables in the plane of two components.

Ellipses are what the noise leaves open of each arrow; rows are never drawn.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_pca("~ . - mdvis", rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.biplot()
