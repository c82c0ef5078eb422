"""A correlation matrix.

Small matrices show the values in the cells.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_cov("~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
