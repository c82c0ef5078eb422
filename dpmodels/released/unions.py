"""Unions of the release types."""

from dpmodels.released.answers import AnswersFitRelease, AnswersRelease
from dpmodels.released.counts import (
    CellsRelease,
    CountsRelease,
    GraphRelease,
    LevelsRelease,
    MarginsRelease,
    QuantilesRelease,
    RunsRelease,
    SumsRelease,
)
from dpmodels.released.moments import CoefficientsRelease, MomentsRelease, SubspaceRelease
from dpmodels.released.selection import PValuesRelease, ScreenedRelease, SelectionRelease

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
