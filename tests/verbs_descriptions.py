"""Entries of verbs that describe variables by counts, sums and ranks."""

from dataclasses import replace

import exact
import numpy as np
import verb_refusals as refusals
from verb_entry import APPROX, DRAWN, SUMMING, Form, Verb

import dpmodels as dp

CONCENTRATED = {"eps": None, "budget": dp.ZCDP(0.1)}
SUMS = {"time": "week", "mechanism": "factorisation"}
STAYING = dp.Pufferfish(1.0, dp.markov_chain([False, True], stay=(0.6, 0.7)))
DESIGN = dp.design(weights="weight", strata="region", bounds=(0.1, 2), weights_are="design")
UNITS = dp.design(weights="weight", psu="id", bounds=(0.1, 2), weights_are="design")
SAMPLED = {"design": DESIGN}
STATES = {"time": "week", "person": "id", "eps": None, "budget": STAYING}

MEAN = Verb(
    "dp_mean",
    ("wage ~ sex + region", "~ wage"),
    "b ~ g",
    answers={"": exact.by_group(np.mean)},
    families="counts measured",
    forms=(
        Form("age ~ region", "sent", {"protocol": "secure_sum"}),
        Form("age ~ sex", "stored labelled"),
        Form("age ~ sex", "drawn", name="Mean of age"),
        Form("age ~ region", "stored forged", APPROX, "approximate"),
        Form("year(day) ~ week", "stored forged", name="of dates"),
        Form("wage ~ region + grade", "stored printed", APPROX, "of coded levels"),
        Form("~ wage", "stored printed", name="of all"),
        Form("wage ~ sex", "sites planned dask standing alike persons"),
        Form("wage ~ region", "hostile", APPROX),
        Form("~ wage", "hostile", name="of all"),
        Form("~ age", "shared"),
        Form("~ wage", "persons", {"mechanism": "paired"}, "paired"),
        Form("~ wage", "rounds", name="of all"),
        Form("week ~ region", "rounds"),
        Form("wage ~ 1", "counted"),
        Form("wage ~ region", "column"),
        Form("age ~ sex", "stored forged", SAMPLED, "sampled"),
        Form("age ~ sex", "stored forged", {"design": UNITS}, "of sampled units"),
    ),
    results={"MeanResult": DRAWN},
    protocols=SUMMING,
    refused=refusals.ONE_NUMBER,
)
MEAN_OF_ALL = replace(
    MEAN,
    formulas=("~ wage", "~ wage"),
    odd="~ b",
    families="means",
    suffix="-of-all",
    forms=(Form("~ age", "stored forged", {"mechanism": "paired"}),),
)
TOTAL = Verb(
    "dp_total",
    ("wage ~ sex + region", "~ wage"),
    "b ~ g",
    answers={"": exact.totals},
    families="counts",
    forms=(
        Form("age ~ region", "sent", {"protocol": "secure_sum"}),
        Form("age ~ sex", "stored labelled"),
        Form("age ~ sex", "drawn", name="Total of age"),
        Form("age ~ region", "stored forged", APPROX, "approximate"),
        Form("~ wage", "stored printed", name="of all"),
        Form("wage ~ sex", "sites planned dask"),
        Form("wage ~ region", "hostile column", APPROX),
        Form("age ~ sex", "stored forged", SAMPLED, "sampled"),
    ),
    results={"TotalResult": DRAWN},
    protocols=SUMMING,
    refused=refusals.ONE_NUMBER,
)
VAR = Verb(
    "dp_var",
    ("age ~ sex", "~ wage"),
    "b ~ g",
    answers={"": exact.by_group(lambda x: np.var(x, ddof=1))},
    families="counts measured",
    forms=(
        Form("age ~ sex", "stored forged"),
        Form("age ~ sex", "stored forged", SAMPLED, "sampled"),
        Form("age ~ sex", "stored forged", {"design": UNITS}, "of sampled units"),
        Form("age ~ sex", "drawn", name="Variance of age"),
        Form("~ age", "labelled"),
        Form("wage ~ seen", "stored printed", {"adjacency": "add-remove"}, "of coded levels"),
        Form("wage ~ sex", "sites alike"),
        Form("~ wage", "planned"),
        Form("wage ~ 1", "dask counted"),
        Form("wage ~ sex", "persons", {"mechanism": "geometric"}),
        Form("wage ~ region", "hostile rounds column"),
    ),
    results={"VarResult": DRAWN},
    protocols=SUMMING,
    refused=refusals.ONE_NUMBER,
)
HIST = Verb(
    "dp_hist",
    ("age ~ sex", "~ wage"),
    "b ~ g",
    answers={"": exact.bins},
    families="counts",
    forms=(
        Form("~ day", "sent", {"protocol": "full"}),
        Form("age ~ sex", "stored forged", {"breaks": 4}),
        Form("age ~ sex", "stored forged printed", {"breaks": 4} | SAMPLED, "sampled"),
        Form("~ age", "stored labelled", {"breaks": 3}, "of all"),
        Form("~ day", "stored forged", {"breaks": 4}, "of dates"),
        Form("age ~ sex", "stored", {"breaks": 16, "mechanism": "partition"}, "partition"),
        Form("age ~ sex", "sites"),
        Form("~ wage", "planned dask"),
        Form("~ wage", "hostile", APPROX),
        Form("~ age", "standing", {"breaks": 20, "mechanism": "tree"}),
    ),
    results={"HistResult": "plot", "WeightedHistResult": "plot"},
    protocols=SUMMING,
    refused=refusals.HIST,
)
FINE_HIST = replace(
    HIST,
    options=({"breaks": 40}, {"breaks": 25}),
    forms=(),
    families="ordered",
    protocols=(),
    suffix="-fine",
)
PLANE = replace(
    HIST,
    formulas=("age + wage ~ sex", "~ age + wage"),
    odd="~ a + b",
    options=({"breaks": (4, 3)},) * 2,
    answers={"": exact.plane},
    families="plane",
    protocols=(),
    suffix="-plane",
    forms=(
        Form("wage + age ~ sex", "stored forged", {"breaks": 6, "mechanism": "partition"}, "runs"),
        Form("age + wage ~ sex", "stored", {"breaks": 4, "mechanism": "grid"}),
        Form("age + day ~ sex", "stored forged", {"breaks": 4, "mechanism": "grid"}, "of dates"),
        Form("~ age + wage", "stored", {"breaks": 3}, "of all"),
    ),
    results={"PlaneResult": "plot"},
)
TABLE = Verb(
    "dp_table",
    ("~ sex + region", "~ region"),
    "~ g + cut(b, [0, 2, 5])",
    answers={"": exact.cells},
    families="counts",
    forms=(
        Form("~ week + sex", "sent", {"protocol": "cape"}),
        Form("~ region + sex", "stored forged"),
        Form("~ region + sex", "stored forged printed", SAMPLED, "sampled"),
        Form("~ sex", "stored sites shared standing persons"),
        Form("~ seen", "stored", STATES, "states"),
        Form("~ cut(age, [0, 5, 10]) + sex", "labelled"),
        Form("~ sex + region", "planned hostile"),
        Form("~ sex + cut(age, [0, 30, 100])", "dask"),
        Form("~ sex", "dask", {"adjacency": "add-remove"}, "add-remove"),
        Form("~ region", "alike"),
    ),
    results={"TableResult": "plot", "StatesResult": "plot", "WeightedTableResult": "plot"},
    protocols=SUMMING,
    refused=refusals.TABLE,
)
ANSWERS = replace(
    TABLE,
    families="responses",
    protocols=(),
    suffix="-answers",
    results={"SurveyResult": DRAWN},
    forms=(Form("~ region + sex", "stored", {"mechanism": "randomized_response"}),),
)
MARGINS = Verb(
    "dp_margins",
    ("~ sex*region + cut(wage, [-5, 10, 45]):region", "~ sex*region"),
    "~ g*cut(b, [0, 2, 5]) + (a > 0)",
    answers={"": exact.margins},
    families="margins",
    forms=(
        Form("~ region*sex", "stored forged", {"adjacency": "add-remove"}),
        Form("~ region*sex", "stored", APPROX | {"mechanism": "residual"}, "residual"),
        Form("~ sex*region", "planned"),
        Form("~ sex*region + region:(age > 0)", "hostile"),
        Form("~ sex*region", "hostile", APPROX | {"mechanism": "residual"}, "residual"),
        Form("~ sex*week", "standing"),
        Form("~ sex*(wage > 0)", "persons", {"mechanism": "residual"}, "residual"),
        Form("~ sex*(wage > 0)", "persons", {"mechanism": "marginals"}, "marginals"),
        Form("~ sex*grade", "stored forged", SAMPLED, "sampled"),
        Form("~ sex*region", "stored", {"design": UNITS}, "of sampled units"),
    ),
    results={"MarginsResult": "plot", "WeightedMarginsResult": "plot"},
    in_rounds=True,
    refused=refusals.MARGINS,
)
SYNTH = Verb(
    "dp_synth",
    ("~ sex + region + wage", "~ sex + region"),
    "~ g + b + (a > 0)",
    ({"cuts": 4},) * 2,
    {"": exact.synthetic},
    families="graphs",
    delta=1e-6,
    forms=(
        Form("~ region + sex + week", "stored forged", {"cuts": {"week": [0, 2, 8]}}),
        Form("~ sex + region", "stored", {"structure": "~ sex:region"}, "declared"),
        Form("~ sex + region", "stored", {"adjacency": "add-remove"}, "add-remove"),
        Form("~ sex + age", "planned labelled", {"cuts": 3, "structure": "~ sex:age"}),
        Form("~ sex + region + wage", "hostile", {"cuts": 3}),
        Form("~ sex + week", "standing"),
        Form("~ sex + (wage > 0)", "persons"),
    ),
    results={"SynthResult": "plot"},
    in_rounds=True,
    refused=refusals.SYNTH,
)
SUMMARY = Verb(
    "dp_summary",
    ("age + region + wage ~ sex", "~ age + wage + sex"),
    "a + b + g ~ (a > 0)",
    answers={"": exact.overview},
    families="counts",
    forms=(
        Form("~ age + region", "sent", {"protocol": "full"}),
        Form("age + region ~ sex", "stored forged hostile", APPROX),
        Form("~ age + sex", "stored sites", name="of all"),
        Form("age + region ~ sex", "planned"),
        Form("age + wage ~ sex", "labelled", {"tests": True}),
        Form("age + grade ~ sex", "stored forged", SAMPLED, "sampled"),
        Form("age + region ~ sex", "stored forged", {"design": UNITS}, "of sampled units"),
    ),
    results={"OverviewResult": "plot"},
    protocols=SUMMING,
    refused=refusals.SUMMARY,
)
TTEST = Verb(
    "dp_ttest",
    ("age ~ sex", "~ wage"),
    "b ~ (a > 0)",
    answers={"": exact.difference},
    families="counts measured",
    forms=(
        Form("age ~ sex", "stored forged labelled"),
        Form("age ~ sex", "drawn", name="Difference in means of age"),
        Form("wage ~ seen", "stored printed", {"mu": 0.1}, "of coded levels"),
        Form("~ I(wage ** 2)", "stored printed", CONCENTRATED, "one sample"),
        Form("wage ~ sex", "sites planned hostile alike column"),
    ),
    results={"TTestResult": DRAWN},
    protocols=SUMMING,
    refused=refusals.TTEST,
)
QUANTILE = Verb(
    "dp_quantile",
    ("wage ~ sex", "~ age"),
    "b ~ g",
    ({}, {"probs": [0, 0.1, 1]}),
    {"": exact.ranks},
    families="quantiles",
    forms=(
        Form("age ~ region", "stored", {"probs": [0.25, 0.5]}),
        Form("day ~ region", "stored forged", {"probs": [0.25, 0.5]}, "of dates"),
        Form("wage ~ region", "stored printed", {"probs": [0, 0.5]}, "with the least"),
        Form("wage ~ sex", "stored forged", SAMPLED, "sampled"),
        Form("wage ~ sex", "stored", {"design": UNITS}, "of sampled units"),
        Form("~ age", "stored shared", name="of all"),
        Form("~ wage", "stored printed", {"level": None}, "no interval"),
        Form("wage ~ grade", "stored printed", {"eps": 1e-6}, "lost"),
        Form("age ~ sex", "labelled", {"probs": 0.5}),
        Form("wage ~ sex", "planned persons"),
        Form("wage ~ sex", "hostile", {"level": 0.95}),
        Form("wage ~ 1", "dask"),
        Form("~ wage", "standing counted"),
        Form("~ wage", "alike", {"level": 0.95}),
        Form("~ wage", "column", {"eps": 1e3, "probs": [0.5], "level": 0.95}),
    ),
    results={"QuantileResult": DRAWN, "WeightedQuantileResult": DRAWN},
    refused=refusals.QUANTILE,
)
SERIES = Verb(
    "dp_series",
    ("~ (age > 50) | sex", "~ (age > 50)"),
    "~ (a > 0)",
    ({"time": "region"},) * 2,
    {"": exact.events},
    families="running",
    forms=(
        Form("~ region", "stored", APPROX | {"time": "week", "by": 3}),
        Form("~ sex", "stored", {"time": "week"}, "of a tree"),
        Form("~ region", "stored forged", {"time": "day", "by": "month"}, "of dates"),
        Form("~ sex", "stored forged", APPROX | SUMS, "factorisation"),
        Form("~ (wage > 50)", "planned", {"time": "week"}),
        Form("~ sex", "standing", {"time": "week"}),
    ),
    results={"SeriesResult": "plot"},
    in_rounds=True,
    refused=refusals.SERIES,
)
SURVFIT = Verb(
    "dp_survfit",
    ("Surv(age, sex) ~ region", "Surv(age, sex) ~ 1"),
    "Surv(b, (a > 0)) ~ g",
    ({"breaks": 4}, {"breaks": [30, 60]}),
    {"": exact.followed},
    families="counts",
    forms=(
        Form("Surv(week, sex) ~ region", "stored forged"),
        Form("Surv(week, sex) ~ 1", "stored", {"mechanism": "tree"}, "of a tree"),
        Form("Surv(age, sex) ~ 1", "sites"),
        Form("Surv(age, sex) ~ 1", "planned", {"breaks": 3}),
    ),
    results={"SurvfitResult": "plot"},
    protocols=SUMMING,
    refused=refusals.SURVFIT,
)

VERBS = tuple(entry for entry in tuple(globals().values()) if isinstance(entry, Verb))
