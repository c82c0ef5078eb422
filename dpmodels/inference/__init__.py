"""Noise intervals and confidence intervals, made where their numbers are made."""

from dpmodels.inference.law import read_spectrum as read_spectrum
from dpmodels.inference.spectrum import Spectrum as Spectrum
