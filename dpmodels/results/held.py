"""What every result is: something released, that prints as a table and cannot be pickled."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

from dpmodels.errors import PrivacyError
from dpmodels.results.refusals import NOT_PICKLED
from dpmodels.writing import write_whole

if TYPE_CHECKING:
    from dpmodels.results.summary import Summary


class Held:
    """A result that a user holds; made from one release."""

    if TYPE_CHECKING:

        @property
        def call(self) -> Any:
            """What was asked."""

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

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the released values and public facts to a netCDF file, for ``dp.load``.

        Parameters
        ----------
        path : path
            Where to write: the whole file or, should that fail, nothing.
        overwrite : bool, default False
            Whether a file that is there already may be replaced. A link never is.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written. What was there is whole then, and this
            result still in memory.

        Notes
        -----
        A digest in the file shows damage and careless change. It is no
        signature: who can change the file can write the digest too.
        """
        from dpmodels.results.store import result_bytes

        write_whole(path, result_bytes(self), overwrite=overwrite)

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(NOT_PICKLED)
