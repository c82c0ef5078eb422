"""The codebook of a call."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from dpmodels.codebook import Codebook
from dpmodels.formula.coding import checked_codebook

Declared = Codebook | Mapping[str, Any] | str | PathLike[str] | None
"""What ``codebook=`` may be: a codebook, declarations by name, or a file of them."""


def declared(codebook: object, data: object, sites: object, formula: object) -> Codebook:
    """Return the declarations that a call means; CodebookError where there are none."""
    return checked_codebook(codebook)
