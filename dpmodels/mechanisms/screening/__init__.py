"""Mechanisms that search many columns for those associated with a response."""

from dpmodels.mechanisms.protocol import ScreeningMechanism as ScreeningMechanism
from dpmodels.mechanisms.screening.adapt import ScreenAdapt as ScreenAdapt
from dpmodels.mechanisms.screening.centred import ScreenCentred as ScreenCentred
from dpmodels.mechanisms.screening.dp_bh import ScreenLogs as ScreenLogs
from dpmodels.mechanisms.screening.moments import ScreenMoments as ScreenMoments
from dpmodels.mechanisms.screening.peeling import ScreenPeeling as ScreenPeeling

SCREENING: dict[str, type[ScreeningMechanism]] = {
    "peeling": ScreenPeeling,
    "moments": ScreenMoments,
    "centred": ScreenCentred,
    "adapt": ScreenAdapt,
    "dp_bh": ScreenLogs,
}
