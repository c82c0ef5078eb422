"""Disclosure reports: what was released, at what cost, and what that guarantees: ``dp.disclosure``.

No other subpackage imports it. Its verb is `dpmodels.disclosures.verb.disclosure`.
"""

from dpmodels.disclosures.verb import Disclosure as Disclosure
from dpmodels.disclosures.verb import disclosure as disclosure
