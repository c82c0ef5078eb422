import re
import shutil
import subprocess

import pytest
from report_samples import NASTY_REPORT, PCA_REPORT

from dpmodels.report import Report, Row, Section, as_latex

PREAMBLE = r"\documentclass{article}\usepackage{array, booktabs, longtable}\begin{document}"


def wide(columns: int) -> Report:
    heads = tuple(f"PC{j}" for j in range(columns))
    rows = (Row("95% noise interval", ("[-0.4118, 0.4136]",) * columns),)
    return Report("t", (), (Section("Importance", heads, rows),), ())


def test_no_special_character_is_left_bare():
    body = as_latex(NASTY_REPORT).replace("% Needs", "", 1)
    assert not re.search(r"(?<!\\)[%#]", body)
    assert not re.search(r"[<>|\"`^~](?!\{\\raggedright)", body)
    assert body.count("{") - body.count(r"\{") == body.count("}") - body.count(r"\}")


def test_no_row_starts_with_an_option():
    lines = as_latex(NASTY_REPORT).splitlines()
    assert not any(line.lstrip().startswith(("[", "*")) for line in lines)


def test_minus_signs_are_minus_signs():
    table = Section("t", ("x",), (Row("a-b", ("-0.5",)), Row("c", ("[-1.5, -0.5]",))))
    source = as_latex(Report("t", (), (table,), ()))
    assert r"a-b & $-$0.5 \\" in source
    assert r"c & {[}$-$1.5, $-$0.5{]} \\" in source


def test_many_columns_stand_in_panels():
    source = as_latex(wide(10))
    assert source.count(r"\begin{longtable}") > 1
    assert source.count("0.4136") == 10


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_compiles_and_fits_the_page(tmp_path):
    for number, report in enumerate((PCA_REPORT, wide(10), NASTY_REPORT, Report("t", (), (), ()))):
        source = tmp_path / f"r{number}.tex"
        source.write_text(f"{PREAMBLE}\n{as_latex(report)}\n\\end{{document}}\n")
        run = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", source.name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
        assert run.returncode == 0, run.stdout[-2000:]
        assert "Overfull" not in run.stdout
