"""Small public tables with their codebooks."""

from dpmodels.datasets.randhie import MOST_YEARS as MOST_YEARS
from dpmodels.datasets.randhie import load_randhie as load_randhie
from dpmodels.datasets.randhie import randhie_codebook as randhie_codebook
