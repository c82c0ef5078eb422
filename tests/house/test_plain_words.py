"""Names say what a value is, and texts are plain English: few words of a short list."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


# The largest number of turns in the texts of a folder.
LIMITS = {"dpmodels": 15, "tests": 5, "benchmarks": 0}


@cache
def words_of(folder):
    """The names that the code of a folder assigns, and its texts."""
    names, texts = [], []
    for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    names.append(name)
                case ast.Constant(value=str(text)):
                    texts.append(text)
    return names, texts


@pytest.mark.expensive
@pytest.mark.parametrize("folder", LIMITS)
def test_hardly_any_name_is_a_filler(folder):
    names, _ = words_of(folder)
    fillers = [name for name in names if FILLERS.fullmatch(name)]
    assert len(fillers) <= 0.005 * len(names), Counter(fillers)


@pytest.mark.expensive
@pytest.mark.parametrize("folder", LIMITS)
def test_hardly_any_text_has_a_turn_of_our_own(folder):
    _, texts = words_of(folder)
    turns = [match.group() for text in texts for match in TURNS.finditer(text)]
    assert len(turns) <= LIMITS[folder], turns
