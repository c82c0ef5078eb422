"""Strategies that release a covariance or second-moment matrix."""

from dpmodels.mechanisms.covariance.adaptive import Adaptive as Adaptive
from dpmodels.mechanisms.covariance.adaptive import AdaptivePure as AdaptivePure
from dpmodels.mechanisms.covariance.adaptive import Shells as Shells
from dpmodels.mechanisms.covariance.coinpress import CoinPress as CoinPress
from dpmodels.mechanisms.covariance.gauss import AnalyzeGauss as AnalyzeGauss
from dpmodels.mechanisms.covariance.gauss import Gauss as Gauss
from dpmodels.mechanisms.covariance.gauss import Laplace as Laplace
from dpmodels.mechanisms.covariance.gauss import ModSulq as ModSulq
from dpmodels.mechanisms.covariance.gauss import Projection as Projection
from dpmodels.mechanisms.covariance.none import Unprivate as Unprivate
from dpmodels.mechanisms.covariance.none import Zero as Zero
from dpmodels.mechanisms.covariance.rounds import Rounds as Rounds
from dpmodels.mechanisms.covariance.rounds import RoundsPure as RoundsPure
from dpmodels.mechanisms.covariance.separate import Iterative as Iterative
from dpmodels.mechanisms.covariance.separate import Separate as Separate
from dpmodels.mechanisms.covariance.separate import SeparatePure as SeparatePure
from dpmodels.mechanisms.protocol import CovarianceMechanism

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
