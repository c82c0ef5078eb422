"""Parameters of one name have one default everywhere, and the one that their docstring says."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEFAULTS = {
    "adjacency": '"replace"',
    "alpha": "0.05",
    "caption": "True",
    "center": "True",
    "clip": "False",
    "confidence": "0.95",
    "delta": "0.0",
    "denoise": '"auto"',
    "exponentiate": "False",
    "intercept": "True",
    "level": "0.95",
    "method": '"bh"',
    "overwrite": "False",
    "patience": "60.0",
    "q": "0.1",
    "restored": "False",
    "seed": "0",
    "typ": "2",
    "widen": "0.1",
}
# Rates of false discoveries and of runs, seeds of audits, tests of a survey.
OTHERS = {
    ("level", "mechanisms/screening_plan.py"): "0.1",
    ("level", "planning/power_simulation.py"): "0.5",
    ("seed", "audit/coupled.py"): "1",
    ("method", "models/survey.py"): '"score"',
}
VALUE = r'(True|False|"[^"\n]*"|\'[^\'\n]*\'|-?[\d_.]+(?:e-?\d+)?)'
PARAMETER = re.compile(rf"\b({'|'.join(DEFAULTS)}): (?!Final)[\w |\[\].,\"-]*? = {VALUE}(?=[,)\n])")
DOCUMENTED = re.compile(rf"^ *(\w+) : [^\n]*, default ({VALUE}|\(.*\))$", re.MULTILINE)


@cache
def texts():
    """The code of the package by the names of its files."""
    package = ROOT / "dpmodels"
    return {
        str(path.relative_to(package)): path.read_text("utf-8") for path in package.rglob("*.py")
    }


def test_parameters_of_one_name_have_one_default():
    different, number = [], defaultdict(int)
    for name, text in texts().items():
        for match in PARAMETER.finditer(text):
            parameter, default = match[1], match[2]
            number[parameter] += 1
            if default != OTHERS.get((parameter, name), DEFAULTS[parameter]):
                different.append(f"{name}: {match[0]}")
    assert different == []
    assert set(number) == set(DEFAULTS)
    assert number["level"] > 60
    assert number["caption"] > 30


def defaults_of(node):
    """The defaults of a function's parameters, or of the fields and parameters of a class."""
    if isinstance(node, ast.ClassDef):
        results = {}
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                results[statement.target.id] = statement.value
            elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                results |= defaults_of(statement)
        return results
    positional = [*node.args.posonlyargs, *node.args.args]
    last = positional[len(positional) - len(node.args.defaults) :]
    pairs = [
        *zip(last, node.args.defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return {argument.arg: default for argument, default in pairs if default is not None}


def test_docstrings_say_the_defaults():
    different, number = [], 0
    for name, text in texts().items():
        nodes = ast.walk(ast.parse(text)) if DOCUMENTED.search(text) else ()
        for node in nodes:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            defaults = defaults_of(node)
            for match in DOCUMENTED.finditer(ast.get_docstring(node) or ""):
                # A docstring of shared parameters stands elsewhere than they do.
                default = ast.unparse(defaults[match[1]]) if match[1] in defaults else ""
                constant = re.search(rf"^{default}: Final = (.+)$", text, re.MULTILINE)
                default = constant[1] if constant else default
                if re.fullmatch(VALUE, default):
                    number += 1
                    if ast.literal_eval(match[2]) != ast.literal_eval(default):
                        different.append(f"{name}: {node.name}: {match[0].strip()}, not {default}")
    assert different == []
    assert number > 40
