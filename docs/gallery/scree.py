"""Eigenvalues above the noise.

Components of the RAND Health Insurance Experiment, each with its noise interval; below the floor
nothing can be told from noise.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

with dp.simulation(seed=1):
    fit = dp.dp_pca("~ .", load_randhie(), codebook=randhie_codebook(), eps=1.0, delta=1e-6)
ax = fit.plot_scree()
