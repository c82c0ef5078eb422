"""What every result is: something released, that prints as a table and cannot be pickled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dpmodels.errors import PrivacyError
from dpmodels.results.refusals import NOT_PICKLED

if TYPE_CHECKING:
    from dpmodels.results.summary import Summary


class Held:
    """A result that a user holds; made from one release."""

    if TYPE_CHECKING:

        @property
        def release(self) -> Any:
            """What crossed from the private to the public side."""

        def summary(self) -> Summary:
            """Return the printed report."""

    @property
    def simulated(self) -> bool:
        """True if released inside ``dp.simulation``: then nothing here is private."""
        simulated: bool = self.release.simulated
        return simulated

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, nan where it is private."""
        return float("nan") if self.release.rows is None else float(self.release.rows)

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(NOT_PICKLED)
