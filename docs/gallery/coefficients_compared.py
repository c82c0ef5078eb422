"""Regressions side by side.

Marks and colours distinguish the models; a term that a model lacks has no mark.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
small = dp.dp_lm("mdvis ~ lncoins + idp + physlm", rows, codebook=book, eps=4, delta=1e-6)
large = dp.dp_lm("mdvis ~ .", rows, codebook=book, eps=4, delta=1e-6)
ax = dp.coefplot({"three terms": small, "all terms": large})
