"""Names say what a value is, and texts are plain English: few words of a short list."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dpmodels"
# Participles and pronouns say neither what a value is nor what it is for.
FILLERS = re.compile(
    r"_*(?:own|one|held|told|said|made|found|given|kept|seen|drawn|known|named|shown|taken|others?"
    r"|mine|theirs|wanted|asked|moved|passed|many|more|most|least|whole|both|apart|near|far|here"
    r"|there|things?|each|which)_*"
)
TURNS = re.compile(
    r"\b(?:is|are|not|to be) told\b|\btells? (?:of|nothing)\b|\bso held\b|\b(?:is|are) had\b"
    r"|\bhas it with\b|\b(?:is|are) said\b|\bspeaks? of\b|\bof whom\b|\bas it stands\b"
    r"|\bgo(?:es)? by\b|\bthe way of\b|\bin words\b|\bdear(?:er|est)?\b",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def nodes():
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    return [node for tree in trees for node in ast.walk(tree)]


@pytest.mark.expensive
def test_hardly_any_name_is_a_filler(nodes):
    names = [node.id for node in nodes if isinstance(node, ast.Name) and _stored(node)]
    names += [node.arg for node in nodes if isinstance(node, ast.arg)]
    fillers = sum(FILLERS.fullmatch(name) is not None for name in names)
    assert fillers <= 0.005 * len(names)


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


@pytest.mark.expensive
def test_hardly_any_text_has_a_turn_of_our_own(nodes):
    texts = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    results = [match.group() for text in texts for match in TURNS.finditer(text)]
    assert len(results) <= 15, results
