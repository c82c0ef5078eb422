"""Odds ratios.

Exponentials of the coefficients of a logistic regression, on a logarithmic axis.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
terms = "lncoins + idp + lpi + physlm + disea + hlthg"
fit = dp.dp_glm(f"mdvis > 2 ~ {terms}", rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot(exponentiate=True)
