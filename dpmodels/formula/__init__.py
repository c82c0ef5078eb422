"""Formulas: R's grammar, a closed allow-list of functions, ranges from the codebook alone."""

from dpmodels.formula.coding import Block as Block
from dpmodels.formula.coding import Design as Design
from dpmodels.formula.coding import design as design
