"""Noise intervals and confidence intervals, made where their numbers are made."""

from dpmodels.inference.bounded import cut_eigenvalues as cut_eigenvalues
from dpmodels.inference.bounded import cut_entries as cut_entries
from dpmodels.inference.bounded import product_spread as product_spread
from dpmodels.inference.law import entry_sd as entry_sd
from dpmodels.inference.law import mean_sd as mean_sd
from dpmodels.inference.law import read_spectrum as read_spectrum
from dpmodels.inference.spectrum import Spectrum as Spectrum
from dpmodels.inference.unknown_law import Unread as Unread
