"""Survival curves.

Kaplan-Meier curves by group with confidence bands and the numbers at risk. The rows are simulated.
"""

import numpy as np

import dpmodels as dp

rng = np.random.default_rng(1)
arm = rng.choice(["standard", "new"], 3_000)
until, seen = rng.exponential(np.where(arm == "new", 40, 25)), rng.uniform(0, 100, 3_000)
rows = {"month": np.minimum(until, seen), "died": until <= seen, "arm": arm}
book = dp.codebook(month=(0, 84), died=dp.Boolean(), arm=["standard", "new"])
fit = dp.dp_survfit("Surv(month, died) ~ arm", rows, codebook=book, eps=0.5, breaks=21)
ax = fit.plot(risk=True)
