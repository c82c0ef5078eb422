"""A callable subpackage: ``dp.audit(...)`` runs an audit, ``dp.audit.Pair`` is a name in it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from dpmodels.audit.coupled import Coupled as _Coupled
from dpmodels.audit.coupled import coupled as _coupled
from dpmodels.audit.neighbours import Pair as _Pair
from dpmodels.audit.neighbours import worst_pairs as _worst_pairs
from dpmodels.audit.result import AuditResult as _AuditResult
from dpmodels.audit.result import Finding as _Finding
from dpmodels.audit.scores import SCORES as _SCORES
from dpmodels.audit.verb import audit as _audit
from dpmodels.audit.verb_recipes import released as _released
from dpmodels.design.callable_module import opened


class CallableModule(ModuleType):
    """The package ``dpmodels.audit``, callable as :func:`dpmodels.audit.verb.audit`."""

    __call__ = staticmethod(_audit)

    if TYPE_CHECKING:
        AuditResult = _AuditResult
        Coupled = _Coupled
        Finding = _Finding
        Pair = _Pair
        SCORES = _SCORES
        coupled = staticmethod(_coupled)
        released = staticmethod(_released)
        worst_pairs = staticmethod(_worst_pairs)


audit: CallableModule = opened("dpmodels.audit", CallableModule)
