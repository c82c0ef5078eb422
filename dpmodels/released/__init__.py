"""Releases: released values, the distribution of their noise, and their cost."""

from dpmodels.released.answers import AnswersFitRelease as AnswersFitRelease
from dpmodels.released.answers import AnswersRelease as AnswersRelease
from dpmodels.released.answers import Channel as Channel
from dpmodels.released.counts import CappedWeights as CappedWeights
from dpmodels.released.counts import CellsRelease as CellsRelease
from dpmodels.released.counts import CountsRelease as CountsRelease
from dpmodels.released.counts import GraphRelease as GraphRelease
from dpmodels.released.counts import HeldIn as HeldIn
from dpmodels.released.counts import LevelsRelease as LevelsRelease
from dpmodels.released.counts import MarginsRelease as MarginsRelease
from dpmodels.released.counts import QuantilesRelease as QuantilesRelease
from dpmodels.released.counts import RunsRelease as RunsRelease
from dpmodels.released.counts import SumsRelease as SumsRelease
from dpmodels.released.moments import Ball as Ball
from dpmodels.released.moments import BoughtCurvature as BoughtCurvature
from dpmodels.released.moments import CoefficientsRelease as CoefficientsRelease
from dpmodels.released.moments import Meat as Meat
from dpmodels.released.moments import MomentNoise as MomentNoise
from dpmodels.released.moments import MomentsRelease as MomentsRelease
from dpmodels.released.moments import SubspaceRelease as SubspaceRelease
from dpmodels.released.moments import Tails as Tails
from dpmodels.released.moments import Tuning as Tuning
from dpmodels.released.moments import UnitScores as UnitScores
from dpmodels.released.selection import PValuesRelease as PValuesRelease
from dpmodels.released.selection import ScreenedRelease as ScreenedRelease
from dpmodels.released.selection import SelectionRelease as SelectionRelease
from dpmodels.released.terms import CapExcess as CapExcess
from dpmodels.released.terms import Clipping as Clipping
from dpmodels.released.terms import MechanismInfo as MechanismInfo
from dpmodels.released.terms import Released as Released
from dpmodels.released.terms import Shared as Shared
from dpmodels.released.terms import UnitCap as UnitCap

Release = MomentsRelease | SubspaceRelease
AnyRelease = (
    Release
    | CoefficientsRelease
    | CountsRelease
    | SumsRelease
    | MarginsRelease
    | GraphRelease
    | RunsRelease
    | QuantilesRelease
    | CellsRelease
    | LevelsRelease
    | ScreenedRelease
    | PValuesRelease
    | AnswersRelease
    | AnswersFitRelease
    | SelectionRelease
)
