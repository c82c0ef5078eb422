"""Entries of verbs that release moments or coefficients of models."""

from dataclasses import replace

import exact
import verb_refusals as refusals
from statsmodels.genmod.families import Binomial, Poisson
from verb_entry import APPROX, DRAWN, PURE, SUMMING, Form, Verb, several

import dpmodels as dp
from dpmodels.models.linear import tune

FORMULA = "~ age + wage + sex + region"
DESIGN = dp.design(weights="weight", strata="region", bounds=(0.1, 2), weights_are="design")
UNITS = dp.design(weights="weight", psu="id", bounds=(0.1, 2), weights_are="design")
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
GAUSS, MOMENTS_OF = {"mechanism": "gauss"}, {"mechanism": "moments"}
CORRELATIONS = {"scale": "sd", "ncomp": 1, "adjacency": "add-remove"}
PPCA = PURE | {"mechanism": "ppca", "ncomp": 1}
OWN, ORIGIN = {"eigenvals": "private"}, {"center": False}

PCA = Verb(
    "dp_pca",
    (FORMULA, FORMULA),
    ODD_FORMULA,
    CENTRED,
    families="covariance subspace",
    delta=1e-6,
    forms=(
        Form("~ age + wage", "sent", {"protocol": "full"}, "full"),
        Form("~ age + wage", "sent", {"protocol": "dpdispca"}, "dpdispca"),
        Form("~ age + wage", "stored planned shared"),
        Form("~ age + wage + region", "stored forged", name="of levels"),
        Form("~ age + wage + region", "stored", {"adjacency": "add-remove"}, "add-remove"),
        Form("~ age + wage", "stored", {"mechanism": "adaptive"}, "adaptive"),
        Form("~ age + wage", "stored forged", CORRELATIONS, "correlations"),
        Form("~ age + wage", "stored forged labelled", PPCA, "subspace"),
        Form("~ age", "stored", {"protocol": "full"}, "of sites"),
        Form("~ age + wage + sex", "labelled sites"),
        *several(
            *("~ age + wage + height", "hostile"),
            plain={},
            correlations={"scale": "sd"},
            origin=ORIGIN,
            separate={"mechanism": "separate"},
            coinpress={"mechanism": "coinpress"},
            ppca={**PPCA, **APPROX, **OWN, **ORIGIN, "ncomp": 2},
        ),
        Form("~ age + log(wage + 1) + sex", "dask"),
        Form("~ age * sex", "dask", PURE, "pure"),
        Form("~ age + wage", "standing", {"mechanism": "coinpress"}, "coinpress"),
        Form("~ age + wage", "alike", GAUSS),
        Form("~ age + wage", "persons", PPCA | OWN),
        Form("~ age + wage + height", "column", GAUSS),
        Form("~ age + wage + height", "column", PPCA | ORIGIN | {"eps": 100.0}, "subspace"),
    ),
    results={"PCAResult": DRAWN, "SubspaceResult": DRAWN},
    protocols=(*SUMMING, "dpdispca"),
    gaussian="gauss",
)
COV = Verb(
    "dp_cov",
    (FORMULA, FORMULA),
    ODD_FORMULA,
    CENTRED,
    families="covariance",
    mechanisms=("gauss",),
    delta=1e-6,
    forms=(
        Form("~ age + wage", "sent", {"protocol": "secure_sum"}),
        Form("~ age + wage", "stored labelled sites planned"),
        Form("~ age + region", "stored forged", {"center": False, "scale": None}, "origin"),
        Form("~ age + wage", "stored forged", PURE | {"mechanism": "zero"}, "zero"),
        Form("~ age + wage + height", "hostile"),
        Form("~ age + wage + sex", "dask"),
        Form("~ age + wage", "dask", {"mechanism": "adaptive"}, "adaptive"),
        Form("~ age + wage", "alike persons", GAUSS),
        Form("~ age + height", "column", GAUSS),
    ),
    results={"CovResult": DRAWN},
    protocols=(*SUMMING, "dpdispca"),
    gaussian="gauss",
)
MOMENTS = Verb(
    "dp_moments",
    (FORMULA, FORMULA),
    ODD_FORMULA,
    answers={"": exact.everything_asked},
    families="covariance",
    mechanisms=("gauss",),
    delta=1e-6,
    forms=(
        Form("~ age + wage", "stored labelled hostile sites planned"),
        Form("~ age + wage + sex", "stored forged", name="of levels"),
        Form("~ bs(age, knots=[50])", "dask"),
    ),
    results={"MomentsResult": "plot"},
    protocols=SUMMING,
)
CCA = Verb(
    "dp_cca",
    ("age + wage ~ sex + region",) * 2,
    "a * b ~ g + log1p(b) + cut(b, [0, 2, 5])",
    answers={"": exact.canonical},
    families="covariance",
    mechanisms=("gauss",),
    delta=1e-6,
    forms=(
        Form("age + wage ~ sex", "stored forged"),
        Form("age ~ wage", "sites planned dask"),
        Form("age ~ wage", "dask", {"mechanism": "rounds"}, "rounds"),
    ),
    results={"CCAResult": DRAWN},
    protocols=SUMMING,
)
LM = Verb(
    "dp_lm",
    ("wage ~ age + sex + region", "wage ~ sex + region"),
    "a ~ g + I(a ** 2) + (a > 0):g",
    ({}, {"weights": "age"}),
    {"": exact.lstsq},
    families="regression",
    delta=1e-6,
    forms=(
        Form("age ~ wage", "sent", {"protocol": "full"}),
        Form("age ~ wage"),
        Form("age ~ wage + region", "stored forged", name="of levels"),
        Form("age ~ wage + region", "stored", {"weights": "weight"}, "weighted"),
        Form("age ~ wage", "stored forged", {"design": DESIGN}, "sampled"),
        Form("age ~ wage", "stored", {"design": UNITS}, "of sampled units"),
        Form("wage ~ age + sex", "labelled sites dask"),
        Form("wage ~ age + region", "planned"),
        Form("height ~ age + wage", "hostile"),
        Form("height ~ 0 + age + wage", "hostile", PURE, "without constant"),
        Form("height ~ age", "hostile", {"mechanism": "adassp"}, "adassp"),
        Form("wage ~ age + sex", "standing"),
        Form("wage ~ age + sex", "standing", {"vcov": "HC"}, "HC"),
        Form("wage ~ age", "shared alike"),
        Form("wage ~ age", "alike", {"vcov": "HC"}, "HC"),
        Form("wage ~ age", "persons", MOMENTS_OF | {"vcov": "iid"}),
        Form("wage ~ age", "persons", MOMENTS_OF | {"vcov": "HC"}, "HC"),
        Form("wage ~ age", "column", MOMENTS_OF),
    ),
    results={"LMResult": DRAWN},
    protocols=SUMMING,
    gaussian="adassp",
    refused=refusals.LM,
)
LM_HC = replace(
    LM,
    options=tuple({**options, "vcov": "HC"} for options in LM.options),
    forms=(),
    mechanisms=("adassp",),
    suffix="-HC",
    rereads=True,
)
LOGISTIC = Verb(
    "dp_glm",
    ("sex ~ age + wage + region", "sex ~ age + wage + region - 1"),
    "(a > 0) ~ a + b + g + I(a ** 2)",
    answers=LOGIT,
    families="coefficients",
    forms=(
        Form("sex ~ age + wage", "stored forged"),
        Form("sex ~ age", "stored labelled alike persons column"),
        Form("sex ~ wage", "planned"),
        Form("sex ~ age + wage", "hostile", APPROX | {"mechanism": "objective"}, "objective"),
        Form("sex ~ age + wage", "hostile", APPROX | {"mechanism": "gradients"}, "gradients"),
        Form("sex ~ age", "stored forged", {"design": DESIGN}, "sampled"),
        Form("sex ~ age", "standing", {"mechanism": "objective"}, "objective"),
        Form("sex ~ age", "standing", {"mechanism": "gradients"}, "gradients"),
    ),
    results={"GLMResult": DRAWN},
    in_rounds=True,
    refused=refusals.GLM,
)
TUNED = replace(
    LOGISTIC,
    options=({"ridge": tune([3_000, 30_000])},) * 2,
    answers={},
    mechanisms=("objective",),
    suffix="-tuned",
    rereads=True,
    forms=(Form("sex ~ age", "stored", {"ridge": tune([3_000, 30_000])}),),
)
COUNTING = replace(
    LOGISTIC,
    formulas=("age ~ wage + sex", "age ~ wage + sex - 1"),
    odd="b ~ a + g + I(a ** 2)",
    options=({"family": "poisson", "clip": 300},) * 2,
    answers={"": exact.likelihood(Poisson(), closest=3.0)},
    mechanisms=("gradients",),
    suffix="-poisson",
    delta=1e-6,
    forms=(
        Form("age ~ wage", "stored forged", {"family": "poisson"}),
        Form("age ~ wage", "stored", {"family": "poisson", "inference": False}, "no law"),
    ),
)
RATES = replace(
    COUNTING,
    families="rates",
    mechanisms=("scores",),
    suffix="-rates",
    forms=(
        Form("age ~ sex + offset(log(wage + 5))", "stored forged", {"family": "poisson"}),
        Form("age ~ wage", "stored", {"family": "poisson", "mechanism": "gradients"}, "gradients"),
    ),
)
CHOOSING = replace(
    LOGISTIC,
    formulas=("region ~ wage + sex", "region ~ wage + sex - 1"),
    odd="g ~ a + b + I(a ** 2) + (a > 0)",
    options=({"family": "multinomial"},) * 2,
    answers={"": exact.by_level},
    mechanisms=("gradients",),
    suffix="-multinomial",
    delta=1e-6,
    forms=(Form("region ~ age + wage", "stored forged hostile", {"family": "multinomial"}),),
    results={"MultinomialResult": DRAWN},
)
TABULATED = replace(
    LOGISTIC,
    formulas=("sex ~ region + seen", "sex ~ region + seen - 1"),
    answers={},
    families="",
    suffix="-counts",
    forms=(
        Form("sex ~ region + seen", "stored forged"),
        Form("region ~ sex + seen", "stored forged", {"family": "multinomial"}),
        Form("cut(wage, [0, 20, 40, 80]) ~ sex", "stored forged", {"family": "ordinal"}),
    ),
    results={"CountedGLM": DRAWN, "CountedMultinomial": DRAWN, "OrdinalResult": DRAWN},
    refused=(),
)
SVM = Verb(
    "dp_svm",
    ("sex ~ age + wage + region", "sex ~ age + wage + region - 1"),
    "(a > 0) ~ a + b + g",
    answers={"": exact.minimum(exact.huber)},
    families="coefficients",
    mechanisms=("objective", "output"),
    forms=(
        Form("sex ~ age + wage", "stored forged"),
        Form("sex ~ age + wage", "hostile", APPROX),
        Form("sex ~ age", "stored labelled column"),
        Form("sex ~ wage", "planned"),
    ),
    results={"SVMResult": DRAWN},
    refused=refusals.SVM,
)

VERBS = tuple(entry for entry in tuple(globals().values()) if isinstance(entry, Verb))
