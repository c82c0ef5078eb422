import ast
import subprocess
import sys
from pathlib import Path

import pytest
from plots_samples import draw_scree

import dpmodels.errors
import dpmodels.plots
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.plots.style import alt_text

LONG = "Privacy: eps = 1, delta = 1e-06; neighbours: replace one row, n public; noise: gauss. " * 3

# A bare package in place of dpmodels/__init__.py, which imports the whole house.
CHECK = """
import sys
import types
house = types.ModuleType("dpmodels")
house.__path__ = [sys.argv[1]]
sys.modules["dpmodels"] = house
import dpmodels.plots
import dpmodels.report
print(sorted({"matplotlib", "statsmodels"} & set(sys.modules)))
print(sorted(m for m in sys.modules if m.startswith("dpmodels.") and m.count(".") == 1))
"""


def test_importing_the_pictures_does_not_import_matplotlib():
    house = str(Path(dpmodels.errors.__file__).parent)
    command = [sys.executable, "-c", CHECK, house]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "[]",
        str([f"dpmodels.{room}" for room in ("errors", "labels", "plots", "report", "typing")]),
    ]


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotAvailable, match=r'pip install "dpmodels\[plot\]"'):
        draw_scree([1.0], labels=["PC1"])


def test_no_picture_imports_matplotlib_before_it_is_known_to_be_there():
    """`fit.plot()` of a histogram raised ModuleNotFoundError."""
    early = []
    for file in Path(dpmodels.plots.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
                continue
            texts = [ast.unparse(statement) for statement in function.body]
            imports = [at for at, text in enumerate(texts) if text.startswith("from matplotlib")]
            axes = [at for at, text in enumerate(texts) if "axes_or_new(" in text]
            if imports and axes and imports[0] < axes[0]:
                early.append(f"{file.name}: {function.name}")
    assert early == []


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_the_caption_lies_under_the_axes_and_within_the_figure(layout):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3), layout=layout)
    ax = draw_scree([2.0, 1.0], labels=["PC1", "PC2"], caption=LONG, ax=figure.subplots())
    figure.draw_without_rendering()
    (text,) = figure.texts
    box = text.get_window_extent()
    assert box.x0 >= 0 <= box.y0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= min(tick.get_window_extent().y0 for tick in ax.get_xticklabels())
    assert " ".join(text.get_text().split()) == LONG.strip()


def test_pictures_of_one_release_side_by_side_have_one_caption():
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    for ax, caption in zip(figure.subplots(1, 3), ("eps = 1", "eps = 1", "eps = 2"), strict=True):
        draw_scree([2.0, 1.0], labels=["PC1", "PC2"], caption=caption, ax=ax)
    assert figure.get_supxlabel() == "eps = 1\neps = 2"


def test_words_instead_of_a_picture_hold_stamp_numbers_and_caption():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    with pytest.raises(ArgumentError, match="plot"):
        alt_text(ax)
    draw_scree([2.0, 1.0], labels=["PC1", "PC2"], stamp="NO", caption="eps = 1.", ax=ax)
    reported = "NO. Scree plot, variances of 2 components: PC1 2; PC2 1. Noise floor: 0.5. eps = 1."
    assert alt_text(ax) == reported
