"""What a guarantee allows an adversary.

The smallest false negative rate of any test for one row, by its false positive rate.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_mean("mdvis ~ idp", rows, codebook=book, eps=1, delta=1e-6)
ax = dp.reading(fit).plot()
