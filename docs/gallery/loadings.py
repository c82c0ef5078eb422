"""Loadings of principal components.

Loadings below 0.1, or below twice their noise, are blank.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_pca("~ . - mdvis", rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.plot_loadings()
