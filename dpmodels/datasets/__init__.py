"""Small public tables with their codebooks."""

from dpmodels.datasets.papers import MOST_YEARS as MOST_YEARS
from dpmodels.datasets.papers import load_randhie as load_randhie
from dpmodels.datasets.papers import randhie_codebook as randhie_codebook
