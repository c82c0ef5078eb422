"""The table of the gallery; each script imports it, and each page shows it in full."""

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.datasets import load_randhie

rand = load_randhie()  # the RAND Health Insurance Experiment, 20,190 years of persons
ratings = ["excellent", "good", "fair", "poor"]
rows = pd.DataFrame(
    {
        "visits": rand["mdvis"],
        "plan": np.where(rand["lncoins"] > 0, "cost sharing", "free care"),
        "health": np.select(
            [rand[f"hlth{letter}"] == 1 for letter in "gfp"], ratings[1:], "excellent"
        ),
        "diseases": rand["disea"],
        "limitation": rand["physlm"],
        "coinsurance": np.exp(rand["lncoins"]) - 1,
        "incentive": rand["lpi"],
        "ceiling": rand["fmde"],
    }
)
book = dp.codebook(
    visits=dp.Integer(0, 100, label="visits to a doctor in a year"),
    plan=dp.Categorical(["free care", "cost sharing"], label="insurance plan"),
    health=dp.Categorical(ratings, label="self-rated health"),
    diseases=dp.Numeric(0, 60, label="index of chronic diseases"),
    limitation=dp.Numeric(0, 1, label="physical limitation"),
    coinsurance=dp.Numeric(0, 100, label="share of the bill that patients pay", unit="percent"),
    incentive=dp.Numeric(0, 8, label="ln(annual payment for taking part in dollars)"),
    ceiling=dp.Numeric(0, 10, label="ln(largest annual expenditure / coinsurance)"),
)
