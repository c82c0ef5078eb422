"""What may have been released."""

from dpmodels.released.answers import AnswersFitRelease, AnswersRelease
from dpmodels.released.coefficients import CoefficientsRelease
from dpmodels.released.counts import CellsRelease, CountsRelease, LevelsRelease
from dpmodels.released.margins import MarginsRelease
from dpmodels.released.moments import MomentsRelease, SubspaceRelease
from dpmodels.released.p_values import PValuesRelease
from dpmodels.released.quantiles import QuantilesRelease
from dpmodels.released.runs import RunsRelease
from dpmodels.released.screened import ScreenedRelease
from dpmodels.released.selection import SelectionRelease
from dpmodels.released.sums import SumsRelease

Release = MomentsRelease | SubspaceRelease
AnyRelease = (
    Release
    | CoefficientsRelease
    | CountsRelease
    | SumsRelease
    | MarginsRelease
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
