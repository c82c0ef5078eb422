"""Mechanisms for regressions: moments of rows (x, y), or coefficients of a linear predictor."""

from dpmodels.mechanisms.protocol import CovarianceMechanism
from dpmodels.mechanisms.protocol import RegressionMechanism as RegressionMechanism
from dpmodels.mechanisms.regression.ellipsoid import Ellipsoid as Ellipsoid
from dpmodels.mechanisms.regression.gradients import NoisyGradients as NoisyGradients
from dpmodels.mechanisms.regression.moments import AdaSSP as AdaSSP
from dpmodels.mechanisms.regression.moments import Moments as Moments
from dpmodels.mechanisms.regression.objective import Objective as Objective
from dpmodels.mechanisms.regression.objective import Output as Output
from dpmodels.mechanisms.regression.rate_scores import RateScores as RateScores
from dpmodels.mechanisms.regression.scores import Scores as Scores
from dpmodels.mechanisms.regression.scores import ScoresPure as ScoresPure

# Of the moments of rows, the response last.
REGRESSION: dict[str, type[CovarianceMechanism]] = {
    "moments": Moments,
    "adassp": AdaSSP,
    "ellipsoid": Ellipsoid,
    "scores": Scores,
    "scores_pure": ScoresPure,
}
# Of coefficients.
COEFFICIENTS: dict[str, type[RegressionMechanism]] = {
    "objective": Objective,
    "gradients": NoisyGradients,
    "output": Output,
}
# Of coefficients of a rate, beside these.
RATES: dict[str, type[RegressionMechanism]] = {"scores": RateScores}
