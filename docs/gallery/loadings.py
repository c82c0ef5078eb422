"""Loadings of principal components.

Blank where a loading is small or within twice its noise, and of components that cannot be
read.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_pca("~ . - mdvis", rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.plot_loadings()
