"""Variances of principal components.

Noise intervals of the released variances, and the noise floor.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_pca("~ . - mdvis", rows, codebook=book, eps=0.1, delta=1e-6)
ax = fit.plot_scree()
