"""Unions of the release types."""

from dpmodels.released import counts
from dpmodels.released.answers import AnswersFitRelease, AnswersRelease
from dpmodels.released.moments import CoefficientsRelease, MomentsRelease, SubspaceRelease
from dpmodels.released.selection import PValuesRelease, ScreenedRelease, SelectionRelease

Release = MomentsRelease | SubspaceRelease
AnyRelease = (
    Release
    | CoefficientsRelease
    | counts.CountsRelease
    | counts.SumsRelease
    | counts.MarginsRelease
    | counts.GraphRelease
    | counts.RunsRelease
    | counts.QuantilesRelease
    | counts.CellsRelease
    | counts.LevelsRelease
    | ScreenedRelease
    | PValuesRelease
    | AnswersRelease
    | AnswersFitRelease
    | SelectionRelease
)
