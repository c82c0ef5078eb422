"""Variables in the plane of two components.

Arrows are loadings, ellipses their noise. Rows are private and not drawn.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_pca("~ . - mdvis", rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.biplot()
