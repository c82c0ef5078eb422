"""Entries of verbs that find bounds, levels or columns, and of answers randomised before."""

from dataclasses import replace

import exact
import verb_refusals as refusals
from verb_entry import APPROX, DRAWN, Form, Verb

import dpmodels as dp

DEVICE = {"device": {"sex": dp.randomized_response([0, 1], lie="1/5")}}
STRATA = {"strata": {"sex": {0: 1, 1: 2}}}

BOUNDS = Verb(
    "dp_bounds",
    ("~ age + wage", "~ wage"),
    "~ a + b",
    answers={"": exact.bounds},
    families="bounds",
    forms=(Form("~ wage", "stored forged planned"), Form("~ age", "standing")),
    results={"BoundsResult": "plot"},
    in_rounds=True,
    refused=refusals.BOUNDS,
)
LEVELS = Verb(
    "dp_levels",
    ("~ sex + region", "~ region"),
    "~ g + b",
    answers={"": exact.levels},
    families="levels",
    delta=1e-6,
    forms=(
        Form("~ region", "stored forged"),
        Form("~ region", "planned", {"delta": 1e-8}),
        Form("~ sex", "standing"),
    ),
    results={"LevelsResult": "plot"},
    refused=refusals.LEVELS,
)
SELECT = Verb(
    "dp_select",
    ("~ region", "~ sex:region"),
    "~ g:cut(b, [0, 2, 5])",
    ({"k": 2}, {"k": 3, "values": 0.5}),
    {"": exact.largest},
    families="selection",
    forms=(
        Form("~ region:sex", "stored", {"k": 3}),
        Form("~ region:week", "stored forged", {"k": 4}, "of many"),
        Form("~ region", "planned", {"k": 1}),
    ),
    results={"SelectResult": "plot"},
    in_rounds=True,
    refused=refusals.SELECT,
)
_COLUMNS = ("age ~ wage + sex + region", "sex ~ age + wage + region")
COLUMNS = replace(
    SELECT,
    formulas=_COLUMNS,
    odd="a ~ b + g + (b > 2)",
    options=({"k": 2}, {"k": 2, "score": "z", "values": 0.3}),
    answers={"": exact.correlated},
    families="columns",
    in_rounds=False,
    suffix="-columns",
    forms=(
        Form("age ~ wage + region", "stored", APPROX | {"k": 2}),
        Form("sex ~ age + wage", "stored", {"score": "z", "values": False}, "z"),
        Form("sex ~ age + wage + region", "stored forged", {"k": 2, "score": "z"}, "z of two"),
    ),
)
GAINS = replace(
    COLUMNS,
    formulas=_COLUMNS[:1],
    options=({"k": 2, "score": "gain"},),
    answers={"": exact.gained},
    forms=(),
    families="gains",
    suffix="-gains",
)
ABOVE = replace(
    COLUMNS,
    options=({"threshold": 0.0, "most": 3}, {"threshold": 0.0, "most": 3, "score": "z"}),
    families="above",
    suffix="-above",
    forms=(Form("~ region", "stored", APPROX | {"threshold": 50, "values": False}),),
)
FDR = Verb(
    "dp_fdr",
    ("age + wage + region ~ sex", "sex + wage ~ age"),
    "a + g + (b > 2) ~ b",
    ({"most": 3}, {"most": 2, "alternative": "larger"}),
    {"": exact.correlated_with},
    families="screening",
    delta=1e-6,
    forms=(
        Form("age + wage + region ~ sex", "stored forged", {"most": 2}),
        Form("age + wage + region ~ sex", "stored", {"most": 2, "method": "by"}, "by"),
        Form("age + wage ~ sex", "planned"),
    ),
    results={"FDRResult": "plot"},
    refused=refusals.FDR,
)
LOGS = replace(
    FDR,
    answers={"": exact.tested_with},
    families="logs",
    suffix="-logs",
    forms=(Form("age + wage ~ sex", "stored forged", {"most": 2, "mechanism": "dp_bh"}),),
)
CENTRED = replace(FDR, forms=(), families="centred", in_rounds=True, suffix="-centred")
ADAPT = replace(
    FDR,
    options=({"most": 3, "alternative": "larger"}, {"most": 2, "alternative": "smaller"}),
    forms=(),
    families="mirrored",
    suffix="-adapt",
)
SURVEY = Verb(
    "dp_survey",
    ("~ sex", "~ region"),
    "~ g",
    forms=(
        Form("~ region + sex", "stored", DEVICE | {"weights": "weight"} | STRATA),
        Form("sex ~ age", "stored forged", DEVICE | {"strata": "region"}, "fit"),
        Form("~ sex", "column", DEVICE, "answers"),
        Form("sex ~ age", "column", DEVICE),
    ),
    results={"SurveyResult": DRAWN, "SurveyFitResult": DRAWN},
)

VERBS = tuple(entry for entry in tuple(globals().values()) if isinstance(entry, Verb))
