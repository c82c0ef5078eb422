"""Formula text to terms: patsy's grammar, our own algebra with limits, R's ``.``.

Only the grammar is patsy's. A factor is read as Python's syntax tree, for the variables it reads.

Nothing is evaluated as Python here or anywhere else in the package.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Final

from dpmodels.errors import FormulaError, shorten

if TYPE_CHECKING:
    from patsy.parse_formula import ParseNode

# A choice: longer than any factor, and short of what exhausts Python's parser.
MAX_CODE = 2_000


# A name without quotes inside, in single quotes.
_SINGLE_QUOTED: Final = re.compile(r"""\bQ\(\s*'([^'"\\]+)'\s*\)""")


def syntax(code: str) -> ast.expr:
    """Parse the text of a factor, with names as they are written; nothing is evaluated."""
    if len(code) > MAX_CODE:
        raise FormulaError(
            f"{shorten(code)!r} in the formula has {len(code):,} characters; one factor has at "
            f"most {MAX_CODE:,}"
        )
    code = _python_of(code).strip()
    try:
        tree = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        problem = f"{shorten(code)!r} in the formula is not an expression"
        raise FormulaError(problem + _instead(code)) from None
    if not code.isascii():
        _restore_names(tree, code.encode())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.func = _renamed(node.func)
    return tree


# NumPy's names of functions that formulas have.
_ALIKE: Final = ("abs", "clip", "cos", "exp", "log", "log10", "log1p", "log2", "sin", "sqrt")
_FROM_NUMPY: Final = {
    **dict(zip(_ALIKE, _ALIKE, strict=True)),
    "maximum": "pmax",
    "minimum": "pmin",
    "where": "ifelse",
}


def _renamed(function: ast.expr) -> ast.expr:
    match function:
        case ast.Attribute(ast.Name("np" | "numpy"), name) if name in _FROM_NUMPY:
            return ast.copy_location(ast.Name(_FROM_NUMPY[name], ast.Load()), function)
        case ast.Name("factor"):
            return ast.copy_location(ast.Name("C", ast.Load()), function)
    return function


_EQUALS: Final = "'=' neither compares nor describes: write a == b, or 'y ~ x' for a response"
_POWER: Final = "R's ^ is written **: (a + b) ** 2 for interactions, I(x ** 2) for a square"
_BACKTICKS: Final = 'names are not quoted by backticks; write Q("a name") instead'
# What people write for a comparison, or for the ~ of a formula.
_SINGLE: Final = re.compile(r"(?<![<>=!])=(?!=)")
_ARROW: Final = re.compile(r"=\s*[<>]")
# Words of Python that are operators in no condition.
_RESERVED: Final = re.compile(rf"\b(?!(?:and|or|not|in|is)\b)(?:{'|'.join(keyword.kwlist)})\b")
_SPACED: Final = re.compile(r"\w\s+\w")


def _instead(code: str) -> str:
    """Say how to write what may be meant by a text that is not an expression."""
    if _SINGLE.search(code):
        return "; write >= or <=" if _ARROW.search(code) else f"; {_EQUALS}"
    for mark, advice in (("^", _POWER), ("`", _BACKTICKS)):
        if mark in code:
            return f"; {advice}"
    if word := _RESERVED.search(code):
        return f'; {word[0]} is a word of Python, write Q("{word[0]}") for its column'
    return '; a name with spaces is written Q("a name")' if _SPACED.search(code) else ""


# R's %in% and as.factor(), outside the texts of a formula, which are levels and names.
_OF_R: Final = re.compile(
    r"""("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(%\s*in\s*%)|\bas\.factor(?=\()"""
)


# A sum of numbered names with dots between the first and the last, outside the texts of a formula.
_NUMBERED_SUM: Final = re.compile(
    r"""("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)"""
    r"""|((?:^|[~+(|,])\s*)([^\W\d]\w*)\s*\+\s*\.\.\.\s*(?=\+\s*([^\W\d]\w*)\s*(?:$|[-+)|,~]))"""
)


def spelled_out(text: str) -> str:
    """Write out the numbered names that ``...`` stands for in a sum.

    >>> spelled_out("y ~ x1 + ... + x4"), spelled_out("~ q08a + ... + q10a")
    ('y ~ x1 + x2 + x3 + x4', '~ q08a + q09a + q10a')
    """

    def names(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        return match[2] + " + ".join(_between(match[3], match[4])) + " "

    return _NUMBERED_SUM.sub(names, text) if "..." in text else text


def _between(first: str, last: str) -> list[str]:
    ends = [re.fullmatch(r"(.*?)(\d+)(\D*)", name) for name in (first, last)]
    written = f"{shorten(first)} + ... + {shorten(last)}"
    if ends[0] is None or ends[1] is None or ends[0].group(1, 3) != ends[1].group(1, 3):
        raise FormulaError(
            f"{written!r}: both ends must be one name with two numbers, such as x1 + ... + x5"
        )
    (start, digits), (stop, last_digits) = ((int(end[2]), end[2]) for end in ends if end)
    padded = digits != str(start) or last_digits != str(stop)
    if padded and len(digits) != len(last_digits):
        raise FormulaError(
            f"{written!r}: numbers with leading zeros must have as many digits at both ends, such "
            "as x01 + ... + x12"
        )
    if not 0 < stop - start < MAX_TERMS:
        raise FormulaError(
            f"{written!r}: the last number must be above the first, by less than {MAX_TERMS:,}"
        )
    width = len(digits) if padded else 0
    return [f"{ends[0][1]}{number:0{width}d}{ends[0][3]}" for number in range(start, stop)]


def _python_of(text: str) -> str:
    return _OF_R.sub(lambda match: match[1] or (" in " if match[2] else "C"), text)


def _restore_names(tree: ast.expr, code: bytes) -> None:
    """Undo Python's NFKC normalisation of names, which may merge different ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            written = code[node.col_offset : node.end_col_offset].decode(errors="replace")
            if folded(written) == node.id:
                node.id = written


def folded(name: str) -> str:
    r"""Return a name as Python reads it where it is an identifier or a keyword argument."""
    return unicodedata.normalize("NFKC", name)


@lru_cache(maxsize=4096)
def variables_in(code: str) -> tuple[str, ...]:
    """Return the names a factor reads: variables, quoted or bare, not functions."""
    return tuple(dict.fromkeys(names_in(syntax(code))))


def names_in(node: ast.expr) -> list[str]:
    """Return the names an expression reads, left to right, with repetitions."""
    names, stack = [], [node]
    while stack:
        node = stack.pop()
        quoted = quoted_name(node)
        if quoted is not None:
            names.append(quoted)
        elif isinstance(node, ast.Name):
            names.append(node.id)
        else:
            stack += reversed(_operands(node))
    return names


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the expressions a node is made of, without a called function or a contrast."""
    match node:
        case ast.Call(func=ast.Name(id="C")):
            return node.args[:1]
        case ast.Call(func=ast.Name()):
            return node.args + [word.value for word in node.keywords]
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def quoted_name(node: ast.expr) -> str | None:
    """Return the name inside ``Q("name")``."""
    match node:
        case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str() as name)], keywords=[]):
            return name
    return None


def text_of(node: ast.AST) -> str:
    """Return an expression as text fit for an error message."""
    return shorten(requoted(ast.unparse(node)), 200)


@dataclass(frozen=True)
class Reading:
    """How one side of a formula is read.

    `dot` are the names that ``.`` stands for and `names` those among which wildcards choose;
    `removed` collects the factors of subtracted terms.
    """

    dot: tuple[str, ...]
    names: tuple[str, ...]
    removed: list[str] = field(default_factory=list)


Term = tuple[str, ...]
"""The factors of one term as normalised text; the empty term is the intercept."""

Terms = dict[frozenset[str], Term]
"""Terms in order of first mention; the same factors in another order are one term."""

INTERCEPT: frozenset[str] = frozenset()

# Choices: beyond what anybody writes, and read within a second and Python's own depth.
MAX_LENGTH = 20_000
MAX_OPERATORS = 5_000
MAX_DEPTH = 40
MAX_TERMS = 5_000
MAX_ORDER = 8


@dataclass(frozen=True)
class ParsedFormula:
    """A formula's terms, response and predictors apart.

    The text has normalised white space and names only variables of its terms: it reads the same if
    no others are declared. Terms stand in order of first mention, without the intercept; `removed`
    are the factors of subtracted terms.
    """

    text: str
    response: tuple[Term, ...]
    predictors: tuple[Term, ...]
    intercept: bool
    removed: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The factors of the predictors, each once."""
        return tuple(dict.fromkeys(code for term in self.predictors for code in term))


def parsed_formula(text: str, names: Iterable[str]) -> ParsedFormula:
    """Split a formula into terms.

    `names` are what ``.`` stands for. A formula has limits of length, depth and terms.
    """
    check_size(text)
    text = spelled_out(text)
    tree = _tree(_python_of(" ".join(text.splitlines())))
    sides = tree.args
    all_names = tuple(names)
    left = Reading((), all_names)
    response = _expand(sides[0], left, 0) if len(sides) == 2 else {}
    response.pop(INTERCEPT, None)
    if len(sides) == 2 and not response:
        left_text = text.split("~")[0].strip()
        raise FormulaError(
            f"the left side of the formula, {shorten(left_text)!r}, names no variable; write "
            "response ~ predictors, or ~ predictors"
        )
    used = _variables(response.values())
    right_names = tuple(name for name in all_names if name not in used)
    right = Reading(right_names, right_names)
    predictors = _sum(sides[-1], right, 0, _terms(()))
    intercept = predictors.pop(INTERCEPT, None) is not None
    removed = tuple(dict.fromkeys(left.removed + right.removed))
    terms, tidy = (tuple(response.values()), tuple(predictors.values())), " ".join(text.split())
    parsed = ParsedFormula(tidy, *terms, intercept, removed)
    remaining = _variables(parsed.response + parsed.predictors)
    if not _variables((removed,)) - remaining:
        return parsed
    return replace(
        parsed, text=_formula_text(parsed, [name for name in right_names if name in remaining])
    )


def _variables(terms: Iterable[Term]) -> set[str]:
    return {name for term in terms for code in term for name in variables_in(code)}


def _formula_text(parsed: ParsedFormula, right_names: Sequence[str]) -> str:
    """Write a formula by its terms; ``.`` for all `right_names`, which come first, of very many."""
    terms = [":".join(term) for term in parsed.predictors]
    left = " + ".join(":".join(term) for term in parsed.response)
    if sum(map(len, terms)) + 3 * len(terms) + len(left) > MAX_LENGTH - 9:
        quoted = [quote(name) for name in right_names]
        terms = [".", *(term for term in terms if term not in quoted)]
    right = " + ".join(terms) or "1"
    return f"{left} ~ {right}{'' if parsed.intercept else ' - 1'}".strip()


def _tree(text: str) -> ParseNode:
    from patsy import PatsyError
    from patsy.parse_formula import parse_formula

    try:
        return parse_formula(text)
    except PatsyError as error:
        place = error.origin.relevant_code() if error.origin else ""
        reason = f"{error.message} at {shorten(place)!r}" if place else error.message
        if error.message.startswith("expected a noun"):
            side = "after" if error.message.endswith("ended") else "before"
            reason = f"a variable is missing {side} {shorten(place)!r}: write one, or remove this"
    # What the tokenizer makes of half characters and open triple quotes, by Python's version.
    except (AssertionError, IndexError, SyntaxError, UnicodeError):
        reason = "it is not made of names, numbers and operators"
    if "^" in text:
        reason = _POWER
    elif text.strip().endswith("~"):
        reason = "nothing stands right of ~; write '~ a + b', 'y ~ a + b' or 'y ~ 1'"
    elif "`" in text:
        reason = _BACKTICKS
    raise FormulaError(f"formula {shorten(text)!r} cannot be read: {reason}")


def check_size(text: str) -> None:
    """Refuse formulas that are not text, too long or too deep."""
    if not isinstance(text, str):
        raise FormulaError(
            f'formula is of type {type(text).__name__}; write a string such as "~ a + b"'
        )
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"formula {shorten(text)!r} has {len(text):,} characters; at most {MAX_LENGTH:,} are "
            'read. Use "~ ." for all codebook variables'
        )
    operators = sum(map(text.count, "+-*/:"))
    if operators > MAX_OPERATORS:
        raise FormulaError(
            f"formula {shorten(text)!r} has {operators:,} operators; at most {MAX_OPERATORS:,} "
            'are read. Use "~ ." for all codebook variables'
        )
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_DEPTH:
            raise FormulaError(
                f"formula is nested more than {MAX_DEPTH} brackets deep at "
                f"{shorten(text[position:])!r}; write it with fewer"
            )


def quote(name: str) -> str:
    """Return the factor that names a variable: itself, or ``Q("...")``."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    return f"Q({json.dumps(name, ensure_ascii=False)})"


def requoted(text: str) -> str:
    """Return a text with names in single quotes as coefficients are called, ``Q("...")``.

    >>> requoted("log(Q('net pay') + 1) > Q('age')")
    'log(Q("net pay") + 1) > age'
    """
    return text if '"' in text else _SINGLE_QUOTED.sub(lambda match: quote(match[1]), text)


def _terms(*terms: Term) -> Terms:
    return {frozenset(term): term for term in terms}


def _sum(node: ParseNode, reading: Reading, depth: int, terms: Terms) -> Terms:
    """Fold a chain of ``+`` and ``-`` into ``terms``, left to right, without recursion."""
    chain: list[tuple[str, ParseNode]] = []
    while node.type in ("+", "-"):
        chain.append((node.type, node.args[-1]))
        if len(node.args) == 1:
            break
        node = node.args[0]
    else:
        chain.append(("+", node))
    for sign, operand in reversed(chain):
        adds = sign == "+"
        if operand.type in ("ZERO", "ONE"):
            operand_terms, adds = _terms(()), adds == (operand.type == "ONE")
        elif adds and operand.type in ("+", "-"):
            # A bracket may keep the intercept or subtract it
            intercept = {INTERCEPT: terms.pop(INTERCEPT)} if INTERCEPT in terms else {}
            operand_terms = _sum(operand, reading, depth + 1, intercept)
        else:
            operand_terms = _expand(operand, reading, depth + 1)
        for key, term in operand_terms.items():
            if adds:
                terms.setdefault(key, term)
            else:
                if key not in terms and key != INTERCEPT:
                    raise FormulaError(
                        f"formula subtracts {shorten(':'.join(term))!r}, which is not among the "
                        "terms before it; leave it out. A number is subtracted inside I(), for "
                        "example I(age - 50)"
                    )
                terms.pop(key, None)
                reading.removed.extend(term)
        _check_count(len(terms))
    return terms


def _expand(node: ParseNode, reading: Reading, depth: int) -> Terms:
    if depth > MAX_DEPTH:
        raise FormulaError(f"formula chains more than {MAX_DEPTH} operators in one term")
    match node.type:
        case "+" | "-":
            return _sum(node, reading, depth, {})
        case ":" | "*" | "/":
            left, right = (_expand(side, reading, depth + 1) for side in node.args)
            return _product(node.type, left, right)
        case "**":
            return _power(node, reading, depth)
        case "PYTHON_EXPR":
            return _factor(node.token.extra, reading)
        case "ONE":
            return _terms(())
        case "~":
            raise FormulaError("formula has more than one '~'; write response ~ predictors")
    raise FormulaError(
        f"formula has a bare {shorten(node.origin.relevant_code())!r}; only 0 and 1 stand alone "
        "(the intercept). Arithmetic goes inside I(), for example I(2 * x)"
    )


def _factor(code: str, reading: Reading) -> Terms:
    if code == ".":
        return _terms(*((quote(name),) for name in reading.dot))
    if code == "...":
        raise FormulaError(
            "'...' stands in a sum between two numbered names, such as x1 + ... + x5; write the "
            "other terms out"
        )
    tree = syntax(code)
    chosen = wildcard(tree, reading.names)
    if chosen is not None:
        return _terms(*((quote(name),) for name in chosen))
    name = quoted_name(tree)
    return _terms((requoted(code) if name is None else quote(name),))


def _product(operator: str, left: Terms, right: Terms) -> Terms:
    """Return ``a:b``, ``a*b = a + b + a:b`` or ``a/b = a + a:b``."""
    if INTERCEPT in left or INTERCEPT in right:
        raise FormulaError("formula crosses the intercept, 1, with other terms; leave the 1 out")
    if operator == ":":
        return _interact(left, right)
    if operator == "*":
        return _merge(left, right, _interact(left, right))
    together = tuple(dict.fromkeys(factor for term in left.values() for factor in term))
    return _merge(left, _interact(_terms(together), right))


def _power(node: ParseNode, reading: Reading, depth: int) -> Terms:
    base, exponent = node.args
    exponent_text = exponent.origin.relevant_code()
    if exponent_text not in map(str, range(1, MAX_ORDER + 1)):
        raise FormulaError(
            f"'**' is followed by {shorten(exponent_text)!r}; expected a whole number from 1 to "
            f"{MAX_ORDER} (interactions up to that order). A variable's power is I(x ** 2)"
        )
    terms = _expand(base, reading, depth + 1)
    if len(terms) == 1 and int(exponent_text) > 1:
        name = shorten(":".join(*terms.values()))
        raise FormulaError(
            f"{name} ** {exponent_text} is {name} itself, as in R: write I({name} ** "
            f"{exponent_text}) for a power, or {name}"
        )
    return reduce(partial(_product, "*"), [terms] * int(exponent_text))


def _interact(left: Terms, right: Terms) -> Terms:
    # Of two equal sets half the pairs coincide.
    _check_count(len(left) * len(right) // 2)
    pairs = (tuple(dict.fromkeys(a + b)) for a in left.values() for b in right.values())
    merged: Terms = {}
    for term in pairs:
        if len(term) > MAX_ORDER:
            raise FormulaError(
                f"{shorten(':'.join(term))!r} is an interaction of {len(term)} factors; at most "
                f"{MAX_ORDER} are supported"
            )
        merged.setdefault(frozenset(term), term)
    _check_count(len(merged))
    return merged


def _merge(*parts: Terms) -> Terms:
    merged: Terms = {}
    for part in parts:
        for key, term in part.items():
            merged.setdefault(key, term)
    _check_count(len(merged))
    return merged


def _check_count(count: int) -> None:
    # The intercept is not counted.
    if count > MAX_TERMS + 1:
        raise FormulaError(
            f"formula expands to more than {MAX_TERMS:,} terms; lower the power or name the "
            "interactions you want"
        )


# Wildcards: functions that stand for variables of the codebook by their names.

WILDCARDS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}


def wildcard(node: ast.expr, names: tuple[str, ...]) -> list[str] | None:
    """Return the names that a wildcard matches, None for other expressions.

    >>> wildcard(ast.parse('starts_with("inc_")', mode="eval").body, ("inc_a", "age", "inc_b"))
    ['inc_a', 'inc_b']
    """
    match node:
        case ast.Call(func=ast.Name(id=choose), args=args, keywords=words) if choose in WILDCARDS:
            pass
        case _:
            return None
    call_text = shorten(ast.unparse(node), 200)
    match (*args, *words):
        case (ast.Constant(value=str() as text),) if text:
            matches = [name for name in names if WILDCARDS[choose](name, text)]
        case _:
            raise FormulaError(f"{call_text!r}: expected a text, such as {choose}('inc_')")
    if not matches:
        raise FormulaError(
            f"{call_text!r} matches no remaining variable of the codebook; upper and lower case "
            "differ"
        )
    return matches
