"""Exact statistics with a proved sensitivity; they add over disjoint rows."""

from dpmodels.statistics.clipped import clipped_moments as clipped_moments
from dpmodels.statistics.moments import MomentWeights as MomentWeights
from dpmodels.statistics.moments import moment_sensitivity as moment_sensitivity
from dpmodels.statistics.moments import moment_weights as moment_weights
from dpmodels.statistics.moments import moments as moments
from dpmodels.statistics.passes import Passes as Passes
from dpmodels.statistics.statistic import Fingerprint as Fingerprint
from dpmodels.statistics.statistic import Statistic as Statistic
