"""R's way of working for differential privacy: a formula, one verb, a printed table."""

from dpmodels import bindings as bindings
from dpmodels.dictionaries.codebook_class import codebook as codebook

__getattr__, __dir__, __all__ = bindings.attach(__name__, __file__)
