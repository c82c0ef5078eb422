"""Attacks that measure the actual privacy of any function of rows.

``dp.audit(recipe, pair, eps=1, delta=1e-6)``: the subpackage itself can be called, see
`dpmodels.audit.verb.audit`. No other subpackage imports it.
"""

from dpmodels.audit.callable_module import CallableModule as CallableModule
from dpmodels.audit.coupled import Coupled as Coupled
from dpmodels.audit.coupled import coupled as coupled
from dpmodels.audit.neighbours import Pair as Pair
from dpmodels.audit.neighbours import worst_pairs as worst_pairs
from dpmodels.audit.result import AuditResult as AuditResult
from dpmodels.audit.result import Finding as Finding
from dpmodels.audit.scores import SCORES as SCORES
from dpmodels.audit.verb_recipes import Recipe as Recipe
from dpmodels.audit.verb_recipes import released as released
