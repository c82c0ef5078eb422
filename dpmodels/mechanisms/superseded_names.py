"""Names of mechanisms that were retracted or superseded, with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpmodels.errors import ArgumentError

_WISHART: Final = (
    "its claim of eps-differential privacy is wrong, as Wishart noise leaves matrices that one "
    "neighbour can release and the other cannot (Imtiaz and Sarwate, 2016, retracted in April "
    "2017; the same fault in Jiang, Xie and Zhang, 2016)",
    'write "laplace", or "moments" in dp_lm, which keep a pure guarantee',
)
SUPERSEDED: Final[Mapping[str, tuple[str, str]]] = {
    "wishart": _WISHART,
    "dp_pca_sn": _WISHART,
    "sulq": (
        "SULQ (Blum, Dwork, McSherry and Nissim, 2005) was modified to MOD-SULQ by Chaudhuri, "
        'Sarwate and Sinha (2012), which is "mod_sulq" here',
        'write "gauss", which needs far less noise, or "mod_sulq" to compare',
    ),
    "ag": (
        'Analyze Gauss (Dwork, Talwar, Thakurta and Zhang, 2014) is "analyze_gauss" here; '
        '"gauss" has half its noise variance off the diagonal at the same guarantee',
        'write "gauss", or "analyze_gauss" to compare',
    ),
}


def refuse_superseded(argument: str, name: object) -> None:
    """Refuse the name of a retracted or superseded mechanism.

    >>> refuse_superseded("mechanism=", "gauss")
    """
    key = name.lower().replace("-", "_") if isinstance(name, str) else ""
    if key in SUPERSEDED:
        reason, instead = SUPERSEDED[key]
        raise ArgumentError(f"{argument}{name!r} is not offered: {reason}; {instead}")
