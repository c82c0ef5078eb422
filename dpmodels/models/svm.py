"""``dp_svm``: private linear support vector machines by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.mechanisms import NoisyGradients, Objective, Output, RegressionMechanism
from dpmodels.models.linear import Model, Tune, coefficients_spec, levels, linear, requested_ridge
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results.classifiers import SVMResult
from dpmodels.statistics.losses import Huber
from dpmodels.verbs import spec_of

TABLE: dict[str, type[RegressionMechanism]] = {
    "objective": Objective,
    "output": Output,
    "gradients": NoisyGradients,
}
AUTOMATIC = (
    "objective",
    "its noise is divided by the curvature of the rows' loss, not by that of the ridge.",
)


@verb
def dp_svm(
    formula: str,
    data: object = None,
    *,
    width: float = 0.5,
    ridge: float | Tune | None = None,
    scale: str | None = "range",
    row_norm: float | None = None,
    mechanism: str | RegressionMechanism = "auto",
    **shared: Unpack[Shared],
) -> SVMResult:
    """Fit a private linear support vector machine with Huber's rounded hinge loss.

    Parameters
    ----------
    formula : str
        For example ``"label ~ x1 + x2"``; the response is a category of two
        levels, or a comparison.
    protocol
        Under ``"secure_sum"`` by ``"gradients"``, else ``"pooled"`` or ``"local"``.
    data
        Not an iterable of frames: the rows are read several times.
    width : float
        Half the length of the round part of the loss, from 0.1 to 4.
    ridge : float or dp.tune(...), optional
        Weight of the penalty beside the sum of the losses: a public number, by
        default one that suits the noise, or several of which held-out rows
        choose one, see :func:`tune`.
    scale : {"range", None}
        Divide columns by their public half-range for the fit, or not.
    row_norm : float, optional
        The longest scaled row to keep whole.
    mechanism : {"auto", "objective", "output", "gradients"} or instance
        Where the noise enters. ``"gradients"`` has no ridge to choose, and leaves out rows that are
        far from most others.

    Returns
    -------
    SVMResult

    Notes
    -----
    ``"objective"`` and ``"output"`` are idealised: sums of losses and gradients are in floating
    point, of about 100 bits. Under ``"pooled"`` they are also added over the sites
    in floating point, rounded differently than in one table. The noise covers that
    rounding for tables of at most 2⁴⁰ rows, in up to some hundred columns, and the
    guarantee covers such tables: a longer one raises a ``FrameError`` after the
    charge.

    References
    ----------
    .. [1] Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011).
       "Differentially private empirical risk minimization." JMLR 12.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.models.svm import dp_svm
    >>> cb = dp.codebook(x=(-1, 1), label=["a", "b"])
    >>> rows = {"x": [-0.8, -0.5, 0.4, 0.9] * 1000, "label": ["a", "a", "b", "b"] * 1000}
    >>> fit = dp_svm("label ~ x", rows, codebook=cb, eps=1.0)
    >>> fit.predict({"x": [-0.9, 0.9]}).tolist()
    ['a', 'b']
    """
    return run_verb("svm", svm_spec, **locals() | {"ridge": requested_ridge(ridge)})


@spec_of("svm", joint="gradients")
def svm_spec(request: Request) -> VerbSpec[SVMResult]:
    """Build the specification of a dp_svm call."""
    loss, terms = Huber(request.options["width"]), linear(request)
    model = Model("svm", loss, levels(terms.equation, "dp_svm"))
    return coefficients_spec(request, terms, model, TABLE, AUTOMATIC, SVMResult)
