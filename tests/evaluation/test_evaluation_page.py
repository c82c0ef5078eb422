"""The page is whole by itself, holds the study, and lets no name act."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError

HOSTILE = '</script><img src=x onerror=alert(1)>&"<!--'


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts."""

    def __init__(self):
        super().__init__()
        self.found, self.scripts = [], []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script":
            self.scripts.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "study.html"
    made = dp.shapes.standard(512)
    shapes = {HOSTILE: made["spiky"], "plain": made["smooth"]}
    algorithms = {HOSTILE: lambda counts, eps: counts + 1}
    study = dp.evaluate(algorithms, shapes, scale=[50, 70], repeats=2)
    study.page(path)
    with pytest.raises(FrameError, match="already"):
        study.page(path)
    return study, path.read_text("utf-8")


def parsed(text):
    elements = Elements()
    elements.feed(text)
    return elements


def data(text):
    return json.loads(re.search(r"^const study = (.*);$", text, flags=re.MULTILINE).group(1))


@pytest.mark.expensive
def test_nothing_is_loaded_and_no_name_acts(page):
    elements = parsed(page[1]).found
    assert not {"img", "link", "iframe"} & {tag for tag, _ in elements}
    assert not [value for _, value in elements if {"src", "href", "onerror"} & set(value)]
    policy = next(value["content"] for tag, value in elements if "http-equiv" in value)
    assert policy.startswith("default-src 'none'")
    assert len([tag for tag, _ in elements if tag == "script"]) == 1
    assert page[1].count("</script>") == 1


def test_the_pictures_have_all_that_they_show(page):
    study, text = page
    page_data = data(text)
    assert page_data["algorithms"] == [HOSTILE, "identity", "uniform"]
    assert [value["scale"] for value in page_data["cells"]] == [50, 70, 50, 70]
    np.testing.assert_allclose(page_data["mean"], study.data["mean"], rtol=1e-3)
    np.testing.assert_allclose(page_data["runs"], study.data["error"], rtol=1e-3)
    # 512 cells are drawn as 256 sums of two.
    truth = study.truths[0].reshape(256, 2).sum(axis=1)
    np.testing.assert_allclose(page_data["truths"][0]["values"], truth)
    np.testing.assert_allclose(page_data["answers"][0][0]["values"], truth + 2)


def test_choices_have_labels_and_tables_stand_without_a_script(page):
    text = page[1]
    elements = parsed(text).found
    chosen = [value["id"] for tag, value in elements if tag in ("select", "input")]
    assert chosen == ["search", "table", "domain", "scale", "eps", "algorithm"]
    assert len(re.findall(r"<label>[^<]+<(?:select|input)", text)) == 6
    assert "prefers-color-scheme: dark" in text
    assert {"lang": "en"} in [value for tag, value in elements if tag == "html"]
    body = text.split("<script>")[0]
    assert "SIMULATION - NOT PRIVATE" in body
    assert "Mean error in each cell" in body


def test_tables_of_two_axes_and_of_rows_without_a_picture(tmp_path):
    tables = {"smooth": dp.shapes.standard((48, 6))["smooth"]}
    study = dp.evaluate({"one": lambda counts, eps: counts}, tables, scale=90, repeats=2)
    study.page(tmp_path / "two.html")
    page_data = data((tmp_path / "two.html").read_text("utf-8"))
    assert page_data["truths"][0]["shape"] == [32, 6]
    assert sum(page_data["truths"][0]["values"]) == 90


@pytest.mark.expensive
def test_pictures_are_drawn(page):
    pytest.importorskip("matplotlib").use("Agg")
    study = page[0]
    axes = study.plot(1)
    assert len(axes) == 3
    assert [tick.get_text() for tick in axes[0].get_yticklabels()][-1] in study.algorithms
    assert axes[1].get_xscale() == axes[1].get_yscale() == "log"
    truth, answer = (line.get_ydata() for line in axes[2].lines[:2])
    np.testing.assert_array_equal(truth, study.truths[1])
    assert len(answer) == 512
    for ax in axes:
        assert "NOT PRIVATE" in " ".join(text.get_text() for text in ax.texts)
    with pytest.raises(ArgumentError, match="cell=9"):
        study.plot_errors(9)
    n_cells = study.data.sizes["cell"]
    with pytest.raises(ArgumentError, match=f"cell={n_cells}"):
        study.plot_errors(n_cells)
    with pytest.raises(ArgumentError, match="algorithm='other'"):
        study.plot_released("other")
