"""Every script of the gallery draws one picture, with words to be read out."""

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

from dpmodels.plots.style import alt_text  # noqa: E402

# Pictures of plans, for which nothing was released.
PLANS = ("power",)
SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_draws_a_picture(script, monkeypatch):
    # The table that most scripts share stands beside their folder.
    monkeypatch.syspath_prepend(script.parents[1])
    ax = runpy.run_path(str(script))["ax"]
    assert ("Privacy" in alt_text(ax)) is (script.stem not in PLANS)
    assert len(alt_text(ax)) > 20
    ax.figure.draw_without_rendering()
    plt.close("all")


def test_the_gallery_has_scripts_with_titles():
    assert len(SCRIPTS) >= 12
    titles = [path.read_text("utf-8").splitlines()[0] for path in SCRIPTS]
    assert len(set(titles)) == len(SCRIPTS)
    assert all(title.startswith('"""') and title.endswith(".") for title in titles)
