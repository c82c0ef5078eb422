"""Every vignette runs from top to bottom, as a notebook would."""

from pathlib import Path

import jupytext
import pandas as pd
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "vignettes"
VIGNETTES = sorted(FOLDER.glob("[0-9]*.md"))
QUICK = ("01-getting-started",)


def test_there_are_vignettes():
    assert [path.stem for path in VIGNETTES] == [
        "01-getting-started",
        "02-formulas-and-codebooks",
        "03-near-optimal-pca",
        "04-covariance-revisited",
        "05-regression-and-inference",
        "06-descriptives",
        "07-pca-then-classify",
        "08-the-retraction",
        "09-bigger-than-memory",
        "10-many-sites",
        "11-survey-tables",
        "12-persons-and-subsets",
        "13-codebooks-and-bounds",
        "14-ranges-and-margins",
        "15-asking-sensitive-questions",
        "16-which-mechanism",
        "17-what-epsilon-means",
        "18-screening-and-fdr",
        "19-dependent-data",
        "20-planning",
        "21-after-the-fit",
        "22-from-the-shell",
        "23-survey-designs",
        "24-synthetic-tables",
    ]


def test_stored_runs_are_at_full_size_and_have_every_line_of_their_figures():
    runs = pd.read_csv(FOLDER / "data" / "near_optimal.csv")
    full = {"synthetic": 5_000, "kddcup99": 494_021, "census": 199_523}
    assert runs.groupby("table")["rows"].max().to_dict() == full
    methods = {"default", "analyze_gauss", "gauss", "ppca", "mod_sulq", "random"}
    for _, lines in runs.groupby(["figure", "table", "rows", "alpha"]):
        assert methods <= set(lines["method"])
    energy = runs[runs["figure"] != "table 1"]
    assert (energy["mean"] <= energy["non_private"]).all()
    assert runs["non_private"].between(0, 1).all()


@pytest.mark.product
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in VIGNETTES
    ],
)
def test_vignette_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    notebook = jupytext.read(path)
    assert notebook.metadata["jupytext"]["formats"] == "ipynb,md:myst"
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    errors = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert not errors
