"""Noise intervals and confidence intervals, made where their numbers are made."""

from dpmodels.inference.spectrum import Spectrum as Spectrum
from dpmodels.inference.spectrum import read_spectrum as read_spectrum
