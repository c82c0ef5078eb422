"""What a guarantee lets anybody tell.

Least rates of misses of any test of whether one row had a part, by its rate of false
alarms.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
with dp.simulation(seed=1):
    fit = dp.dp_mean("mdvis ~ idp", rows, codebook=book, eps=1, delta=1e-6)
ax = dp.reading(fit).plot()
