"""How many rows an analysis needs.

Computed from public facts and stated assumptions; no data are read.
"""

import dpmodels as dp

cb = dp.codebook(income=(0, 200), age=(18, 90))
rows = [1_000, 3_000, 10_000, 30_000]
fit = dp.power("income ~ age", codebook=cb, n=rows, eps=1.0, delta=1e-6, effect={"age": 0.2})
ax = fit.plot()
