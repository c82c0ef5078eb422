"""How the package is cited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from dpmodels.arguments import checked_keywords, option
from dpmodels.version import __version__

AUTHORS: Final = "The dpmodels authors"
TITLE: Final = "dpmodels: R's way of working for differential privacy"
YEAR: Final = "2026"


@checked_keywords("dp.citation")
def citation(format: Literal["text", "bibtex", "cff"] = "text") -> str:
    """Return how to cite this version of the package.

    Parameters
    ----------
    format : {"text", "bibtex", "cff"}
        A line for a list of references, an entry for BibTeX, or the citation file format.

    Returns
    -------
    str
        Print it. The sources of a mechanism stand in its docstring and in the printed report.

    Raises
    ------
    ArgumentError
        If the format is unknown.

    Examples
    --------
    >>> import dpmodels as dp
    >>> print(dp.citation("bibtex"))
    @software{dpmodels,
      author  = {{The dpmodels authors}},
      title   = {dpmodels: {R}'s way of working for differential privacy},
      year    = {2026},
      version = {0.1.0}
    }
    """
    return _FORMATS[option("format", format, _FORMATS)]()


def _text() -> str:
    return f"{AUTHORS} ({YEAR}). {TITLE}. Version {__version__}."


def _bibtex() -> str:
    fields = {
        "author ": f"{{{AUTHORS}}}",
        "title  ": TITLE.replace(": R's", ": {R}'s"),
        "year   ": YEAR,
        "version": __version__,
    }
    return (
        "@software{dpmodels,\n"
        + ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        + "\n}"
    )


def _cff() -> str:
    return f"""\
cff-version: 1.2.0
message: If you use this software, please cite it as below.
type: software
title: "{TITLE}"
authors:
  - name: {AUTHORS}
version: {__version__}
license: MIT
"""


_FORMATS: Final[Mapping[str, Callable[[], str]]] = {"text": _text, "bibtex": _bibtex, "cff": _cff}
