"""Every verb of the package: how it is asked, and what is its exact answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import exact
import numpy as np
from statsmodels.genmod.families import Binomial, Poisson

from dpmodels.models.tune import tune

Answer = Callable[..., None]


def by_laws_of_its_own(fit: Any, *asked: Any) -> None:
    """What has its own laws of the answer."""


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb on the suite's public rows.

    Attributes
    ----------
    name
        Of the function.
    formulas
        By the ways of its family.
    odd
        A formula on the codebook of odd rows.
    words
        Its further words, by the ways of its family or the same for both.
    answers
        Compare a result with the exact answer: takes the result, the formula,
        the rows and the codebook.
    by
        Names of the mechanisms it is tried with; empty for all of its family.
    more
        What tells it from another verb of its name.
    rereads
        Reads the rows again, whatever the mechanism.
    """

    name: str
    formulas: tuple[str, str]
    odd: str
    words: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
    answers: Mapping[str, Answer] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    more: str = ""
    rereads: bool = False

    def answer(self, mechanism: str) -> Answer:
        """What compares a result of this mechanism with the exact answer."""
        return self.answers.get(mechanism, self.answers.get("", by_laws_of_its_own))


FORMULA = "~ age + wage + sex + region"
# Every kind of factor a formula has, alone and in products.
ODD_FORMULA = (
    "~ a * b + g + log1p(b) + poly(a, 2) + bs(b, knots=[3]) + ifelse(a > 0, 1, 0) "
    "+ cut(b, [0, 2, 5]) + C(g):a + (a > 0):b"
)
CENTRED = ({"center": True}, {"center": False})
LOGIT = {
    "": exact.minimum(exact.binomial),
    # Noise of a row's gradient or so, whatever the budget.
    "gradients": exact.likelihood(Binomial(), closest=2.0),
}

PCA = Verb("dp_pca", (FORMULA, FORMULA), ODD_FORMULA, CENTRED)
COV = Verb("dp_cov", (FORMULA, FORMULA), ODD_FORMULA, CENTRED, by=("gauss",))
MOMENTS = Verb(
    "dp_moments",
    (FORMULA, FORMULA),
    ODD_FORMULA,
    answers={"": exact.everything_asked},
    by=("gauss",),
)
CCA = Verb(
    "dp_cca",
    ("age + wage ~ sex + region",) * 2,
    "a * b ~ g + log1p(b) + cut(b, [0, 2, 5])",
    answers={"": exact.canonical},
    by=("gauss",),
)
LM = Verb(
    "dp_lm",
    ("wage ~ age + sex + region", "wage ~ sex + region"),
    "a ~ g + I(a ** 2) + (a > 0):g",
    ({}, {"weights": "age"}),
    {"": exact.lstsq},
)
LM_HC = Verb(
    LM.name,
    LM.formulas,
    LM.odd,
    tuple({**words, "vcov": "HC"} for words in LM.words),
    LM.answers,
    by=("adassp",),
    more="-HC",
    rereads=True,
)
LOGISTIC = Verb(
    "dp_glm",
    ("sex ~ age + wage + region", "sex ~ age + wage + region - 1"),
    "(a > 0) ~ a + b + g + I(a ** 2)",
    answers=LOGIT,
)
TUNED = Verb(
    LOGISTIC.name,
    LOGISTIC.formulas,
    LOGISTIC.odd,
    ({"ridge": tune([3_000, 30_000])},) * 2,
    by=("objective",),
    more="-tuned",
    rereads=True,
)
COUNTING = Verb(
    "dp_glm",
    ("age ~ wage + sex", "age ~ wage + sex - 1"),
    "b ~ a + g + I(a ** 2)",
    ({"family": "poisson", "clip": 300},) * 2,
    {"": exact.likelihood(Poisson(), closest=3.0)},
    by=("gradients",),
    more="-poisson",
)
CHOOSING = Verb(
    "dp_glm",
    ("region ~ wage + sex", "region ~ wage + sex - 1"),
    "g ~ a + b + I(a ** 2) + (a > 0)",
    ({"family": "multinomial"},) * 2,
    {"": exact.by_level},
    by=("gradients",),
    more="-multinomial",
)
SVM = Verb(
    "dp_svm",
    ("sex ~ age + wage + region", "sex ~ age + wage + region - 1"),
    "(a > 0) ~ a + b + g",
    answers={"": exact.minimum(exact.huber)},
    by=("objective", "output"),
)
MEAN = Verb(
    "dp_mean", ("wage ~ sex + region", "~ wage"), "b ~ g", answers={"": exact.by_group(np.mean)}
)
MEAN_OF_ALL = Verb(
    "dp_mean", ("~ wage", "~ wage"), "~ b", answers={"": exact.by_group(np.mean)}, more="-of-all"
)
VAR = Verb(
    "dp_var",
    ("age ~ sex", "~ wage"),
    "b ~ g",
    answers={"": exact.by_group(lambda x: np.var(x, ddof=1))},
)
HIST = Verb("dp_hist", ("age ~ sex", "~ wage"), "b ~ g", answers={"": exact.bins})
FINE_HIST = Verb(
    HIST.name, HIST.formulas, HIST.odd, ({"breaks": 40}, {"breaks": 25}), HIST.answers, more="-fine"
)
PLANE = Verb(
    "dp_hist",
    ("age + wage ~ sex", "~ age + wage"),
    "~ a + b",
    ({"breaks": (4, 3)},) * 2,
    {"": exact.plane},
    more="-plane",
)
TABLE = Verb(
    "dp_table",
    ("~ sex + region", "~ region"),
    "~ g + cut(b, [0, 2, 5])",
    answers={"": exact.cells},
)
ANSWERS = Verb(
    "dp_table",
    TABLE.formulas,
    TABLE.odd,
    answers=TABLE.answers,
    more="-answers",
)
MARGINS = Verb(
    "dp_margins",
    ("~ sex*region + cut(wage, [-5, 10, 45]):region", "~ sex*region"),
    "~ g*cut(b, [0, 2, 5]) + (a > 0)",
    answers={"": exact.margins},
)
SUMMARY = Verb(
    "dp_summary",
    ("age + region + wage ~ sex", "~ age + wage + sex"),
    "a + b + g ~ (a > 0)",
    answers={"": exact.overview},
)
TTEST = Verb("dp_ttest", ("age ~ sex", "~ wage"), "b ~ (a > 0)", answers={"": exact.difference})
QUANTILE = Verb(
    "dp_quantile",
    ("wage ~ sex", "~ age"),
    "b ~ g",
    ({}, {"probs": [0, 0.1, 1]}),
    {"": exact.ranks},
)
SERIES = Verb(
    "dp_series",
    ("~ (age > 50) | sex", "~ (age > 50)"),
    "~ (a > 0)",
    ({"time": "region"},) * 2,
    {"": exact.events},
)
SURVFIT = Verb(
    "dp_survfit",
    ("Surv(age, sex) ~ region", "Surv(age, sex) ~ 1"),
    "Surv(b, (a > 0)) ~ g",
    ({"breaks": 4}, {"breaks": [30, 60]}),
    {"": exact.followed},
)
BOUNDS = Verb("dp_bounds", ("~ age + wage", "~ wage"), "~ a + b", answers={"": exact.bounds})
LEVELS = Verb("dp_levels", ("~ sex + region", "~ region"), "~ g + b", answers={"": exact.levels})
SELECT = Verb(
    "dp_select",
    ("~ region", "~ sex:region"),
    "~ g:cut(b, [0, 2, 5])",
    ({"k": 2}, {"k": 3, "values": 0.5}),
    {"": exact.largest},
)
_COLUMNS = ("age ~ wage + sex + region", "sex ~ age + wage + region")
COLUMNS = Verb(
    "dp_select",
    _COLUMNS,
    "a ~ b + g + (b > 2)",
    ({"k": 2}, {"k": 2, "score": "z", "values": 0.3}),
    {"": exact.correlated},
    more="-columns",
)
GAINS = Verb(
    "dp_select",
    _COLUMNS[:1],
    COLUMNS.odd,
    ({"k": 2, "score": "gain"},),
    {"": exact.gained},
    more="-gains",
)
ABOVE = Verb(
    "dp_select",
    _COLUMNS,
    COLUMNS.odd,
    ({"threshold": 0.0, "most": 3}, {"threshold": 0.0, "most": 3, "score": "z"}),
    {"": exact.correlated},
    more="-above",
)
FDR = Verb(
    "dp_fdr",
    ("age + wage + region ~ sex", "sex + wage ~ age"),
    "a + g + (b > 2) ~ b",
    ({"most": 3}, {"most": 2, "alternative": "larger"}),
    {"": exact.correlated_with},
)
LOGS = Verb(FDR.name, FDR.formulas, FDR.odd, FDR.words, {"": exact.tested_with}, more="-logs")
ADAPT = Verb(
    FDR.name,
    FDR.formulas,
    FDR.odd,
    ({"most": 3, "alternative": "larger"}, {"most": 2, "alternative": "smaller"}),
    FDR.answers,
    more="-adapt",
)
