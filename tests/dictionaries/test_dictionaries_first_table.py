"""From a file as people have it to the first printed table, in four lines or fewer."""

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import dpmodels as dp

DDI = """<codeBook><dataDscr>
<var name="wage" intrvl="contin" measUnit="dollars an hour"><labl>hourly wage</labl>
<valrng><range min="0" max="80"/></valrng><invalrng><item VALUE="-9"/></invalrng></var>
<var name="sex"><catgry><catValu>1</catValu><labl>male</labl></catgry>
<catgry><catValu>2</catValu><labl>female</labl></catgry></var></dataDscr></codeBook>"""
CSV = """name,type,min,max,levels,label,unit,missing
wage,number,0,80,,hourly wage,dollars an hour,-9
sex,,,,1=male; 2=female,,,
"""
LINES = {
    "spss": """
        draft = dp.codebook.draft("study.sav").complete(wage=(0, 80))
        rows = pd.read_spss("study.sav", convert_categoricals=False)
        print(dp.dp_mean("wage ~ sex", rows, codebook=draft, eps=1).summary())
    """,
    "stata": """
        draft = dp.codebook.draft("study.dta").complete(wage=dp.Numeric(0, 80, missing=[-9]))
        rows = pd.read_stata("study.dta", convert_categoricals=False)
        print(dp.dp_mean("wage ~ sex", rows, codebook=draft, eps=1).summary())
    """,
    "csv": """
        draft = dp.codebook.draft("dictionary.csv")
        print(dp.dp_mean("wage ~ sex", "rows.csv", codebook=draft, eps=1).summary())
    """,
    "ddi": """
        draft = dp.codebook.draft("study.xml")
        print(dp.dp_mean("wage ~ sex", "rows.csv", codebook=draft, eps=1).summary())
    """,
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with 2,000 rows, a tenth of whose wages are refused, in every format."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"wage": rng.uniform(10, 30, 2_000), "sex": rng.integers(1, 3, 2_000)})
    rows.loc[::10, "wage"] = -9
    labels = {"column_labels": {"wage": "hourly wage"}}
    labels["variable_value_labels"] = {"sex": {1: "male", 2: "female"}}
    pyreadstat.write_sav(rows, "study.sav", missing_ranges={"wage": [-9]}, **labels)
    pyreadstat.write_dta(rows, "study.dta", **labels)
    rows.to_csv("rows.csv", index=False)
    (tmp_path / "dictionary.csv").write_text(CSV)
    (tmp_path / "study.xml").write_text(DDI)


@pytest.mark.product
@pytest.mark.parametrize("source", LINES)
def test_four_lines_lead_to_the_first_table(study, source, capsys):
    lines = [line.strip() for line in LINES[source].strip().splitlines()]
    assert len(lines) <= 4
    with dp.simulation(seed=1):
        exec("\n".join(lines), {"dp": dp, "pd": pd})
    printed = capsys.readouterr().out
    assert "male" in printed
    assert "female" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith(("male", "female"))]
    means = np.array([float(row[2]) for row in rows])
    # Of these rows the means are within .35 of 20, and cells of -9 held at 0 would make 18 of them.
    # The noise has an sd below .25: beyond 1.7 with a probability below 1e-6 for all eight means.
    assert len(means) == 2
    assert np.abs(means - 20).max() < 1.7
