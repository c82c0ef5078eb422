"""Calls that a verb refuses: what the message has to name, what is changed, the error."""

import numpy as np
from verb_entry import Refusal, bad

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError, FormulaError, UnknownVariable

Refusals = tuple[Refusal, ...]
NAN = float("nan")
BIG = dp.codebook(a=list(range(999)), b=list(range(999)), c=list(range(999)))

TWO_SIDED: Refusals = (
    ("response", {"formula": "~ age + sex"}, FormulaError),
    *bad("row_norm", ArgumentError, 0, -1.0, NAN, "1"),
)
ONE_NUMBER: Refusals = (
    ("takes one variable", {"formula": "age + wage ~ sex"}, FormulaError),
    ("category", {"formula": "region ~ sex"}, FormulaError),
)
FACTORS: Refusals = (("is a number", {"formula": "~ wage + sex"}, FormulaError),)
LM: Refusals = (
    *TWO_SIDED,
    *bad("weights", ArgumentError, 3, ["age"]),
    ("'height'", {"weights": "height"}, CodebookError),
    ("'wage'", {"weights": "wage", "formula": "age ~ sex"}, CodebookError),
    ("response", {"formula": "region ~ age"}, FormulaError),
    *bad("mechanism", ArgumentError, "gradients", "ppca", dp.mechanisms.Zero()),
)
GLM: Refusals = (
    *TWO_SIDED,
    *bad("family", ArgumentError, "gamma", None, ["poisson"]),
    ("response", {"formula": "age ~ sex", "family": "binomial", "clip": None}, FormulaError),
    ("response", {"formula": "wage ~ sex", "family": "poisson"}, FormulaError),
    ("response", {"formula": "region ~ sex", "family": "binomial", "clip": None}, FormulaError),
    ("clip", {"formula": "age ~ sex", "family": "poisson", "clip": 0.0}, ArgumentError),
    ("clip", {"formula": "sex ~ age", "family": "binomial", "clip": 1.0}, ArgumentError),
    *bad("scale", ArgumentError, "sd", 1.0),
    *bad("mechanism", ArgumentError, "moments", "gauss"),
    (
        "mechanism",
        {"formula": "age ~ sex", "family": "poisson", "mechanism": "output"},
        ArgumentError,
    ),
)
SVM: Refusals = (
    *TWO_SIDED,
    *bad("width", ArgumentError, 0.0, 99, "1"),
    *bad("ridge", ArgumentError, 0.0, -1, "1"),
    *bad("mechanism", ArgumentError, "scores", "geometric"),
    ("response", {"formula": "age ~ wage"}, FormulaError),
)
HIST: Refusals = (
    ("takes one variable", {"formula": "age + wage + I(age + 1) ~ sex"}, FormulaError),
    *ONE_NUMBER[1:],
    *bad("breaks", ArgumentError, 1, 2.5, "4", [1], [0, 50], [0, 50, 20], [0, 50, 50]),
    *bad("breaks", ArgumentError, [-9, 0, 9], [0, 50, NAN], True, None, 10**9),
)
MARGINS: Refusals = (
    ("is a number", {"formula": "~ wage*sex"}, FormulaError),
    ("left side", {"formula": "sex ~ region"}, FormulaError),
    ("names no variable", {"formula": "~ 1"}, FormulaError),
    *bad("mechanism", ArgumentError, "geometric", "gaussian", 3),
    ("1,000,000,000 cells", {"formula": "~ a + a:b:c", "codebook": BIG}, FormulaError),
)
SYNTH: Refusals = (
    ("names 1 column", {"formula": "~ sex"}, FormulaError),
    ("name columns alone", {"formula": "~ sex*region"}, FormulaError),
    ("left side", {"formula": "sex ~ region"}, FormulaError),
    ("computed from numbers", {"formula": "~ sex + I(wage + 1)"}, FormulaError),
    ("dp_levels", {"formula": "~ a + b", "codebook": BIG}, FormulaError),
    ("names 'wages'", {"structure": "~ sex:wages"}, FormulaError),
    ("no terms", {"structure": "~ 1"}, FormulaError),
    *bad("structure", ArgumentError, None, 3),
    *bad("m", ArgumentError, 0, 2, None),
    *bad("cuts", ArgumentError, True, 2.5, "4", [0, 1], {"height": 3}, None),
    *bad("mechanism", ArgumentError, "geometric", "gaussian", 3),
)
TABLE: Refusals = (
    *FACTORS,
    (
        "dp_margins('~ sex:region + region:age'",
        {"formula": "~ sex:region + region:age"},
        FormulaError,
    ),
    ("names no variable", {"formula": "1 ~ region"}, FormulaError),
)
SUMMARY: Refusals = (("is a number", {"formula": "sex ~ wage"}, FormulaError),)
TTEST: Refusals = (
    *ONE_NUMBER,
    ("two groups", {"formula": "wage ~ region"}, FormulaError),
    *bad("mu", ArgumentError, NAN, "0", None),
)
BOUNDS: Refusals = (
    ("dp_bounds", {"formula": "age ~ sex"}, FormulaError),
    ("'sex'", {"formula": "~ age + sex"}, FormulaError),
    ("log1p(age)", {"formula": "~ log1p(age)"}, FormulaError),
)
FDR: Refusals = (
    *bad("q", ArgumentError, 0.0, 1.0, -0.1, NAN, "0.1", None),
    *bad("most", ArgumentError, 0, -1, 9, 2.5, "3", True),
    *bad("method", ArgumentError, "bonferroni", None, 3),
    *bad("alternative", ArgumentError, "greater", None),
    ("a + b + c ~ y", {"formula": "~ age + wage"}, FormulaError),
    ("a + b + c ~ y", {"formula": "age | sex"}, FormulaError),
    ("one variable", {"formula": "age ~ sex + wage"}, FormulaError),
    ("both sides", {"formula": "age + sex ~ sex"}, FormulaError),
    ("3 levels", {"formula": "age ~ region"}, FormulaError),
    ("two-sided", {"mechanism": "adapt", "alternative": "two-sided"}, ArgumentError),
    (
        "adapt",
        {"mechanism": "adapt", "alternative": "larger", "delta": 0.0},
        BudgetError,
    ),
    ("one value", {"formula": "wage + I(age * 0) ~ sex"}, CodebookError),
)
LEVELS: Refusals = (
    ("levels", {"formula": "sex ~ region"}, FormulaError),
    *bad("codebook", CodebookError, 3),
    ("levels", {"formula": "~ sex:region"}, FormulaError),
    ("delta", {"delta": 0.0}, BudgetError),
    ("delta", {"eps": None, "delta": 0.0, "budget": dp.ZCDP(1.0)}, BudgetError),
)
SELECT: Refusals = (
    ("'~ sex:region'", {"formula": "~ sex + region"}, FormulaError),
    ("'~ sex:region'", {"formula": "~ sex*region"}, FormulaError),
    ("one variable", {"formula": "~ sex | region"}, FormulaError),
    ("two at least", {"formula": "age ~ wage"}, FormulaError),
    ("must be a number", {"formula": "region ~ age + wage"}, FormulaError),
    ("score", {"formula": "sex ~ age + wage", "score": "count"}, ArgumentError),
    ("score", {"formula": "~ sex", "score": "gain"}, ArgumentError),
    ("noisy_counts", {"formula": "sex ~ .", "mechanism": "noisy_counts"}, ArgumentError),
    (
        "threshold=",
        {"formula": "sex ~ .", "mechanism": "sparse_vector", "threshold": None},
        ArgumentError,
    ),
    ("beyond what is", {"formula": "sex ~ .", "eps": 1e-9, "delta": 0.0}, BudgetError),
    ("is a number", {"formula": "~ age"}, FormulaError),
    ("at least 3", {"formula": "~ cut(age, [0, 100])"}, FormulaError),
    *bad("k", ArgumentError, 0, -1, 10**7, 1.5, "2", True),
    ("k= and threshold= are both", {"k": 2, "threshold": 5.0}, ArgumentError),
    ("threshold=", {"most": 2, "threshold": None}, ArgumentError),
    *(
        ("most", {"k": None, "threshold": 0.5, "most": limit}, ArgumentError)
        for limit in (0, 10**7, 2.0)
    ),
    *(
        ("threshold", {"k": None, "threshold": smallest}, ArgumentError)
        for smallest in (NAN, np.inf, "9", True, -1, 1e300)
    ),
    *bad("score", ArgumentError, "counts", 3),
    *bad("values", ArgumentError, 0.0, 0.001, 0.95, 2, "yes", None),
    *bad("mechanism", ArgumentError, "exponential", "geometric"),
    (
        "a fixed number of",
        {"k": None, "threshold": 0.5, "mechanism": "peeling"},
        ArgumentError,
    ),
)
SERIES: Refusals = (
    *bad("time", ArgumentError, 3, None, ["region"]),
    *bad("time", FormulaError, "sex", "age"),
    ("is not in the codebook", {"time": "day"}, UnknownVariable),
    *bad("by", ArgumentError, 2, "week", True),
    ("is a number", {"formula": "~ age"}, FormulaError),
    ("is a number", {"formula": "~ 1 | age"}, FormulaError),
    ("one kind of event", {"formula": "~ sex + (age > 50)"}, FormulaError),
    ("is the time", {"formula": "~ region"}, FormulaError),
    *bad("mechanism", ArgumentError, "geometric", "wavelet"),
)
SURVFIT: Refusals = (
    *bad("breaks", ArgumentError, 1, 2.5, [50, 20], [0, 50, NAN], True, 10**9),
    *bad("breaks", FormulaError, 2_000),
    *bad("mechanism", ArgumentError, "partition", "gauss"),
    ("Surv(time, event)", {"formula": "age ~ sex"}, FormulaError),
    ("two arguments", {"formula": "Surv(age) ~ sex"}, FormulaError),
    ("not negative", {"formula": "Surv(wage, sex) ~ region"}, FormulaError),
    ("not a declared number", {"formula": "Surv(age + 1, sex) ~ 1"}, FormulaError),
    ("3 levels", {"formula": "Surv(age, region) ~ sex"}, FormulaError),
    ("two levels", {"formula": "Surv(age, wage) ~ sex"}, FormulaError),
    ("is a number", {"formula": "Surv(age, sex) ~ wage"}, FormulaError),
    ("twice", {"formula": "Surv(age, sex) ~ sex"}, FormulaError),
    ("no group", {"formula": "Surv(age, sex) ~ 0"}, FormulaError),
)
QUANTILE: Refusals = (
    *ONE_NUMBER,
    *bad("probs", ArgumentError, 1.5, [-0.1], [], NAN, "0.5", None, [0.5, "1"]),
    *bad("level", ArgumentError, 0.0, 1.0, "0.9"),
)
