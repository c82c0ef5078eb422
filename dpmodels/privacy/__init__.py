"""Guarantees, events, calibration, composition and the ledger: no noise, no data."""

from dpmodels.privacy.budget import (
    WRITE_DELTA,
    ZCDP,
    Adjacency,
    AdjacencyName,
    ApproxDP,
    Guarantee,
    PureDP,
    adjacency,
    protecting,
    resolve_budget,
)
from dpmodels.privacy.calibrate import gaussian_delta, gaussian_eps, gaussian_multiplier
from dpmodels.privacy.chain import MarkovChain, markov_chain
from dpmodels.privacy.compose import (
    bounded_range_to_zcdp,
    compose_gaussians,
    gaussian_to_bounded_range,
    pure_to_zcdp,
    split_gaussian,
    total_eps,
    total_rho,
    zcdp_to_approx,
)
from dpmodels.privacy.events import (
    ApproxEvent,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PufferfishEvent,
    PureEvent,
)
from dpmodels.privacy.groups import group_events, planned_for_group
from dpmodels.privacy.ledger import Ledger
from dpmodels.privacy.lines import About, Entry
from dpmodels.privacy.pufferfish import Pufferfish, hidden_by
from dpmodels.privacy.quilts import Quilt, wasserstein_sensitivity
from dpmodels.privacy.spent import Spent
from dpmodels.privacy.verb_charge import (
    Charge,
    charge,
    charge_of,
    charge_once,
    check_ledger,
    verified,
)

__all__ = [
    "WRITE_DELTA",
    "ZCDP",
    "About",
    "Adjacency",
    "AdjacencyName",
    "ApproxDP",
    "ApproxEvent",
    "BoundedRangeEvent",
    "Charge",
    "Entry",
    "Event",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "Ledger",
    "MarkovChain",
    "Pufferfish",
    "PufferfishEvent",
    "PureDP",
    "PureEvent",
    "Quilt",
    "Spent",
    "adjacency",
    "bounded_range_to_zcdp",
    "charge",
    "charge_of",
    "charge_once",
    "check_ledger",
    "compose_gaussians",
    "gaussian_delta",
    "gaussian_eps",
    "gaussian_multiplier",
    "gaussian_to_bounded_range",
    "group_events",
    "hidden_by",
    "markov_chain",
    "planned_for_group",
    "protecting",
    "pure_to_zcdp",
    "resolve_budget",
    "split_gaussian",
    "total_eps",
    "total_rho",
    "verified",
    "wasserstein_sensitivity",
    "zcdp_to_approx",
]
