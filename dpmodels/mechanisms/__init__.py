"""Mechanisms: the only way from private to released values; one strategy per file.

Tables name every mechanism of a family: those below, and ``REGRESSION``, ``COEFFICIENTS``,
``COUNTS``, ``CHAINS``, ``ORDERED``, ``PLANE``, ``MARGINS``, ``MEASURED``, ``RESPONSES``,
``SAMPLED``, ``BOUNDS``, ``LEVELS``, ``QUANTILES``, ``MEANS``, ``SELECTION`` and ``SCREENING`` in
their folders. Adding one adds a file and a line.
"""

from dpmodels.mechanisms.chains import CHAINS as CHAINS
from dpmodels.mechanisms.chains import QuiltCounts as QuiltCounts
from dpmodels.mechanisms.choose import Choice as Choice
from dpmodels.mechanisms.choose import choose_strategy as choose_strategy
from dpmodels.mechanisms.counts import BOUNDS as BOUNDS
from dpmodels.mechanisms.counts import COUNTS as COUNTS
from dpmodels.mechanisms.counts import LEVELS as LEVELS
from dpmodels.mechanisms.counts import MEASURED as MEASURED
from dpmodels.mechanisms.counts import ORDERED as ORDERED
from dpmodels.mechanisms.counts import PLANE as PLANE
from dpmodels.mechanisms.counts import RESPONSES as RESPONSES
from dpmodels.mechanisms.counts import Factorisation as Factorisation
from dpmodels.mechanisms.counts import Gaussian as Gaussian
from dpmodels.mechanisms.counts import Geometric as Geometric
from dpmodels.mechanisms.counts import Grid as Grid
from dpmodels.mechanisms.counts import Partition as Partition
from dpmodels.mechanisms.counts import RandomizedResponse as RandomizedResponse
from dpmodels.mechanisms.counts import Ranges as Ranges
from dpmodels.mechanisms.counts import Runs as Runs
from dpmodels.mechanisms.counts import Tree as Tree
from dpmodels.mechanisms.counts import Wavelet as Wavelet
from dpmodels.mechanisms.covariance.adaptive import Adaptive as Adaptive
from dpmodels.mechanisms.covariance.adaptive import AdaptivePure as AdaptivePure
from dpmodels.mechanisms.covariance.analyze_gauss import AnalyzeGauss as AnalyzeGauss
from dpmodels.mechanisms.covariance.coinpress import CoinPress as CoinPress
from dpmodels.mechanisms.covariance.gauss import Gauss as Gauss
from dpmodels.mechanisms.covariance.gauss import Laplace as Laplace
from dpmodels.mechanisms.covariance.iterative import Iterative as Iterative
from dpmodels.mechanisms.covariance.mod_sulq import ModSulq as ModSulq
from dpmodels.mechanisms.covariance.none import Unprivate as Unprivate
from dpmodels.mechanisms.covariance.none import Zero as Zero
from dpmodels.mechanisms.covariance.projection import Projection as Projection
from dpmodels.mechanisms.covariance.rounds import Rounds as Rounds
from dpmodels.mechanisms.covariance.rounds import RoundsPure as RoundsPure
from dpmodels.mechanisms.covariance.separate import Separate as Separate
from dpmodels.mechanisms.covariance.separate import SeparatePure as SeparatePure
from dpmodels.mechanisms.covariance.shells import Shells as Shells
from dpmodels.mechanisms.margins import GRAPHS as GRAPHS
from dpmodels.mechanisms.margins import MARGINS as MARGINS
from dpmodels.mechanisms.margins import Graph as Graph
from dpmodels.mechanisms.margins import Marginals as Marginals
from dpmodels.mechanisms.margins import Residual as Residual
from dpmodels.mechanisms.protocol import CellMechanism as CellMechanism
from dpmodels.mechanisms.protocol import CountMechanism as CountMechanism
from dpmodels.mechanisms.protocol import CovarianceMechanism as CovarianceMechanism
from dpmodels.mechanisms.protocol import Facts as Facts
from dpmodels.mechanisms.protocol import LevelMechanism as LevelMechanism
from dpmodels.mechanisms.protocol import MarginMechanism as MarginMechanism
from dpmodels.mechanisms.protocol import MomentMechanism as MomentMechanism
from dpmodels.mechanisms.protocol import Plan as Plan
from dpmodels.mechanisms.protocol import ResponseMechanism as ResponseMechanism
from dpmodels.mechanisms.protocol import SelectionMechanism as SelectionMechanism
from dpmodels.mechanisms.protocol import SubspaceMechanism as SubspaceMechanism
from dpmodels.mechanisms.protocol import SumsMechanism as SumsMechanism
from dpmodels.mechanisms.regression import COEFFICIENTS as COEFFICIENTS
from dpmodels.mechanisms.regression import RATES as RATES
from dpmodels.mechanisms.regression import REGRESSION as REGRESSION
from dpmodels.mechanisms.regression import AdaSSP as AdaSSP
from dpmodels.mechanisms.regression import Ellipsoid as Ellipsoid
from dpmodels.mechanisms.regression import Moments as Moments
from dpmodels.mechanisms.regression import NoisyGradients as NoisyGradients
from dpmodels.mechanisms.regression import Objective as Objective
from dpmodels.mechanisms.regression import Output as Output
from dpmodels.mechanisms.regression import RateScores as RateScores
from dpmodels.mechanisms.regression import RegressionMechanism as RegressionMechanism
from dpmodels.mechanisms.regression import Scores as Scores
from dpmodels.mechanisms.sampled import SAMPLED as SAMPLED
from dpmodels.mechanisms.scalar import MEANS as MEANS
from dpmodels.mechanisms.scalar import QUANTILES as QUANTILES
from dpmodels.mechanisms.scalar import Bracketed as Bracketed
from dpmodels.mechanisms.scalar import Exponential as Exponential
from dpmodels.mechanisms.scalar import Paired as Paired
from dpmodels.mechanisms.scalar import QuantileMechanism as QuantileMechanism
from dpmodels.mechanisms.scalar import RankTree as RankTree
from dpmodels.mechanisms.scalar import Refined as Refined
from dpmodels.mechanisms.screening import SCREENING as SCREENING
from dpmodels.mechanisms.screening import ScreenAdapt as ScreenAdapt
from dpmodels.mechanisms.screening import ScreenCentred as ScreenCentred
from dpmodels.mechanisms.screening import ScreeningMechanism as ScreeningMechanism
from dpmodels.mechanisms.screening import ScreenLogs as ScreenLogs
from dpmodels.mechanisms.screening import ScreenMoments as ScreenMoments
from dpmodels.mechanisms.screening import ScreenPeeling as ScreenPeeling
from dpmodels.mechanisms.selection import SELECTION as SELECTION
from dpmodels.mechanisms.selection import NoisyCounts as NoisyCounts
from dpmodels.mechanisms.selection import Peeling as Peeling
from dpmodels.mechanisms.selection import PermuteAndFlip as PermuteAndFlip
from dpmodels.mechanisms.selection import SparseVector as SparseVector
from dpmodels.mechanisms.subspace.power import Power as Power
from dpmodels.mechanisms.subspace.ppca import PPCA as PPCA
from dpmodels.mechanisms.subspace.random import Random as Random
from dpmodels.mechanisms.user_supplied import check as check
from dpmodels.mechanisms.user_supplied import register as register
from dpmodels.released import MomentNoise as MomentNoise

COVARIANCE: dict[str, type[CovarianceMechanism]] = {
    "gauss": Gauss,
    "shells": Shells,
    "laplace": Laplace,
    "analyze_gauss": AnalyzeGauss,
    "mod_sulq": ModSulq,
    "separate": Separate,
    "separate_pure": SeparatePure,
    "adaptive": Adaptive,
    "adaptive_pure": AdaptivePure,
    "iterative": Iterative,
    "coinpress": CoinPress,
    "rounds": Rounds,
    "rounds_pure": RoundsPure,
    "projection": Projection,
    "zero": Zero,
    "none": Unprivate,
}
SUBSPACE: dict[str, type[SubspaceMechanism]] = {
    "ppca": PPCA,
    "power": Power,
    "random": Random,
}
