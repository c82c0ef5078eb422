"""The page of comparisons counts its rows as they are, and every line on it runs."""

import re
from pathlib import Path

import pytest

import dpmodels as dp

PAGE = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
SETUP = re.search(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)[1]
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| There |"))
]
# A bar inside a cell of a table is escaped.
LINES = [left.split("`")[1].replace("\\|", "|") for _, left in ROWS if left.startswith("`")]
# They simulate whole studies.
EXPENSIVE = tuple(line for line in LINES if line.startswith("dp.power("))


def run(folder, monkeypatch, lines):
    """Run the setup and some lines in one namespace, where files may be written."""
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    monkeypatch.chdir(folder)
    names = {}
    with dp.simulation(seed=1):
        exec(SETUP, names)
        return {line: str(eval(line, names)) for line in lines}


def test_the_page_counts_its_rows_and_says_why_of_those_without_a_line():
    match = re.search(r"Of\s+(\d+)\s+rows\s+(\d+)\s+have\s+a\s+line", PAGE)
    assert [int(group) for group in match.groups()] == [len(ROWS), len(LINES)]
    assert len(LINES) >= 0.9 * len(ROWS) >= 45
    assert len(set(LINES)) == len(LINES)
    assert all(left.startswith(("`", "*no*: ")) for _, left in ROWS)


@pytest.mark.product
def test_every_line_of_the_page_runs(tmp_path, monkeypatch):
    result = run(tmp_path, monkeypatch, [line for line in LINES if line not in EXPENSIVE])
    assert "None" not in result.values()


@pytest.mark.slow
def test_lines_of_the_page_that_simulate_studies_run(tmp_path, monkeypatch):
    assert len(run(tmp_path, monkeypatch, EXPENSIVE)) == len(EXPENSIVE) > 0
