"""What a charge is for, in the words a ledger keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dpmodels.codebook import Codebook
from dpmodels.privacy import About


def about(verb: str, formula: str, strategy: Any, codebook: Mapping[str, Any]) -> About:
    """Return what a ledger writes of a call.

    Parameters
    ----------
    verb, formula : str
        As called.
    strategy : mechanism
        With a card.
    codebook : Codebook
        The declarations used; the ledger has their digest.
    """
    declared = json.dumps(Codebook(codebook).to_dict(), sort_keys=True)
    return About(verb, formula, strategy.card.name, sha256(declared.encode()).hexdigest())
