"""What has crossed: a released value, the law of its noise, and what it cost."""

from dpmodels.released.answers import AnswersFitRelease as AnswersFitRelease
from dpmodels.released.answers import AnswersRelease as AnswersRelease
from dpmodels.released.answers import Channel as Channel
from dpmodels.released.coefficients import BoughtCurvature as BoughtCurvature
from dpmodels.released.coefficients import CoefficientsRelease as CoefficientsRelease
from dpmodels.released.coefficients import Tuning as Tuning
from dpmodels.released.counts import CellsRelease as CellsRelease
from dpmodels.released.counts import CountsRelease as CountsRelease
from dpmodels.released.counts import HeldIn as HeldIn
from dpmodels.released.counts import LevelsRelease as LevelsRelease
from dpmodels.released.kinds import AnyRelease as AnyRelease
from dpmodels.released.kinds import Release as Release
from dpmodels.released.margins import MarginsRelease as MarginsRelease
from dpmodels.released.moments import Ball as Ball
from dpmodels.released.moments import Meat as Meat
from dpmodels.released.moments import MomentNoise as MomentNoise
from dpmodels.released.moments import MomentsRelease as MomentsRelease
from dpmodels.released.moments import SubspaceRelease as SubspaceRelease
from dpmodels.released.quantiles import QuantilesRelease as QuantilesRelease
from dpmodels.released.runs import RunsRelease as RunsRelease
from dpmodels.released.screened import ScreenedRelease as ScreenedRelease
from dpmodels.released.selection import SelectionRelease as SelectionRelease
from dpmodels.released.sums import SumsRelease as SumsRelease
from dpmodels.released.terms import Card as Card
from dpmodels.released.terms import Released as Released
from dpmodels.released.terms import Shared as Shared
