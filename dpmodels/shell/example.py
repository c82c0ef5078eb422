"""What the command line does without a command: a private analysis of persons, printed."""

from __future__ import annotations

import dpmodels as dp
from dpmodels.shell.outputs import tell


def main_job() -> int:
    """Print private principal components of the RAND Health Insurance Experiment."""
    from dpmodels.datasets import MOST_YEARS, load_randhie, randhie_codebook

    fit = dp.dp_pca(
        "~ mdvis + lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        load_randhie(),
        codebook=randhie_codebook(),
        eps=1.0,
        delta=1e-6,
        rows=MOST_YEARS,
        ncomp=6,
    )
    tell(fit.summary())
    return 0
