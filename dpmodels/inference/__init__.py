"""Noise intervals and confidence intervals."""

from dpmodels.inference.correlations import cut_eigenvalues as cut_eigenvalues
from dpmodels.inference.correlations import cut_entries as cut_entries
from dpmodels.inference.correlations import product_spread as product_spread
from dpmodels.inference.spectrum import Spectrum as Spectrum
from dpmodels.inference.spectrum import Unread as Unread
from dpmodels.inference.spectrum import entry_sd as entry_sd
from dpmodels.inference.spectrum import mean_sd as mean_sd
from dpmodels.inference.spectrum import read_spectrum as read_spectrum
