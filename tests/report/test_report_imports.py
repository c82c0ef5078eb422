import subprocess
import sys
from pathlib import Path

import dpmodels.errors

# A bare package in place of dpmodels/__init__.py, which imports the whole house.
CHECK = """
import sys
import types
house = types.ModuleType("dpmodels")
house.__path__ = [sys.argv[1]]
sys.modules["dpmodels"] = house
import dpmodels.report as r
report = r.Report("t", (), (r.Section("s", ("a",), (r.Row("x", ("1",)),)),), ())
for render in (r.as_text, r.as_html, r.as_latex, r.as_markdown, r.as_page):
    assert render(report)
heavy = {"numpy", "pandas", "statsmodels", "matplotlib", "xarray", "scipy"}
print(sorted(heavy & set(sys.modules)))
print(sorted(m for m in sys.modules if m.startswith("dpmodels.") and ".report" not in m))
"""


def test_report_knows_no_model_and_loads_nothing_heavy():
    house = str(Path(dpmodels.errors.__file__).parent)
    command = [sys.executable, "-c", CHECK, house]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "['dpmodels.errors', 'dpmodels.labels']"]
