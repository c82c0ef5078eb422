"""Two-sided formulas: one response, its terms, and levels of them merged into "Other"."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from dpmodels.codebook import Codebook, of_variables
from dpmodels.errors import FormulaError, FrameError, UnknownVariable, shorten
from dpmodels.formula.coding import (
    Block,
    Design,
    Factor,
    checked_codebook,
    code_terms,
    known_formula,
    of_blocks,
    used_codebook,
)
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import (
    ParsedFormula,
    check_size,
    parsed_formula,
    quote,
    syntax,
    variables_in,
)
from dpmodels.formula.sides import marks
from dpmodels.formula.values import Basis, Category, Columns, Real, Truth, as_real
from dpmodels.typing import Floats
from dpmodels.variables import Categorical, Numeric, Variable

# A choice: more levels than rows of a large survey can carry at any usual budget.
MOST_LEVELS: Final = 300
_WRITE: Final = "write 'y ~ x | firm' or 'y ~ x | firm + year'"


def split_fixed(formula: str, book: Mapping[str, Variable]) -> tuple[str, tuple[str, ...]]:
    """Return a formula without its fixed effects, and the factors that these are.

    >>> import dpmodels as dp
    >>> split_fixed("y ~ x | firm", dp.codebook(y=(0, 1), x=(0, 1), firm=["a", "b"]))
    ('y ~ x', ('firm',))
    """
    check_size(formula)
    separators = [position for position in marks(formula) if formula[position] == "|"]
    if not separators:
        return formula, ()
    before, behind = formula[: separators[0]], formula[separators[0] + 1 :]
    if len(separators) > 1 or "~" in [behind[position] for position in marks(behind)]:
        raise FormulaError(
            f"formula {shorten(formula)!r}: expected fixed effects behind one '|', {_WRITE}; "
            'clusters are person= with vcov="cluster", and a condition stands in I(a | b)'
        )
    if not before.partition("~")[2].strip(" 01+-"):
        raise FormulaError(
            f"formula {shorten(formula)!r} has fixed effects and no term: name a variable before "
            "'|', or write dp_mean('y ~ firm') for means by level"
        )
    return before.strip(), _fixed_effects(formula, behind, book)


def _fixed_effects(formula: str, behind: str, book: Mapping[str, Variable]) -> tuple[str, ...]:
    parsed = parsed_formula(f"~ {behind}" if behind.strip() else "~ 1", ())
    if not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(formula)!r} names no fixed effect after '|'; {_WRITE}"
        )
    if parsed.removed or not parsed.intercept or any(len(term) > 1 for term in parsed.predictors):
        raise FormulaError(
            f"{shorten(behind.strip())!r} behind '|': expected single factors joined by '+', "
            f"{_WRITE}"
        )
    fixed = tuple(code for (code,) in parsed.predictors)
    sizes = [len(_levels(code, book)) for code in fixed]
    if sum(sizes) > MOST_LEVELS:
        raise FormulaError(
            f"{shorten(behind.strip())!r} behind '|' has {sum(sizes):,} levels; at most "
            f"{MOST_LEVELS} are fitted, as each is a column with noise: declare groups of levels"
        )
    return fixed


def _levels(code: str, book: Mapping[str, Variable]) -> tuple[object, ...]:
    try:
        value = compile_factor(code, book)
    except UnknownVariable as error:
        name = error.name
        raise UnknownVariable(
            f"fixed effect {shorten(name)!r} has no declared levels: declare them in the "
            f'codebook, dp.codebook({name if name.isidentifier() else "firm"}=["a", "b"])',
            name,
        ) from None
    if isinstance(value, Truth):
        value = as_category(value, code)
    if isinstance(value, Category):
        return value.levels
    text = shorten(code)
    declare = f"declare them, {text}=[1, 2, 3], or write C({text}) if it is a whole number"
    raise FormulaError(
        f"fixed effect {text!r} is a number, which has no levels: "
        + (declare if code.isidentifier() else "name a factor, or cut a number at public breaks")
    )


def with_fixed(parsed: ParsedFormula, fixed: Iterable[str]) -> ParsedFormula:
    """Add fixed effects to the terms, with the constant that they contain."""
    names = tuple(fixed)
    if not names:
        return parsed
    for code in names:
        if (code,) in parsed.predictors:
            raise FormulaError(
                f"{shorten(code)!r} is a term and a fixed effect; leave it out before '|'"
            )
    return replace(
        parsed,
        text=f"{parsed.text} | {' + '.join(names)}",
        predictors=(*parsed.predictors, *((code,) for code in names)),
        intercept=True,
    )


def levels_of_fixed(design: Design, code: str) -> tuple[tuple[object, ...], Floats]:
    """Return the levels of a fixed effect, and its columns at each, shape (levels, columns)."""
    block = next(block for block in design.blocks if block.term == (code,))
    (factor,), (contrast,) = block.factors, block.contrasts
    assert isinstance(factor, Category)
    assert contrast is not None
    return factor.levels, contrast


# exp of it is 1e13: a choice, beyond what rates differ by.
LARGEST_OFFSET = 30.0


@dataclass(frozen=True)
class TwoSided:
    """Both sides of a formula, coded from the codebook alone.

    The response is one column, the number, or for a category the indicators of all levels but the
    first; `terms` may have none, and never the intercept. An `offset` is subtracted from the
    response, or is a column of the linear predictor, with the slope 1: `known`. The last terms are
    `fixed` effects, which stand behind ``|``.
    """

    response: Design
    terms: Design
    intercept: bool
    offset: str = ""
    known: Design | None = None
    fixed: tuple[str, ...] = ()

    @property
    def shown(self) -> list[int]:
        """Positions of the terms' columns that are not of fixed effects."""
        absorbed = [(code,) for code in self.fixed]
        terms = [block.term for block in self.terms.blocks for _ in block.names]
        return [position for position, term in enumerate(terms) if term not in absorbed]

    @property
    def joint(self) -> Design:
        """The columns of the terms, then those of the offset and of the response, as one design."""
        sides = [self.terms, *([] if self.known is None else [self.known]), self.response]
        variables = {name: declared for side in sides for name, declared in side.codebook.items()}
        blocks = tuple(block for side in sides for block in side.blocks)
        return of_blocks(self.terms.formula, of_variables(variables), blocks)


def two_sided(
    formula: str,
    codebook: Codebook | None,
    *,
    excluded: Iterable[str] = (),
    most: int = 2,
    linked: bool = False,
    absorb: bool = False,
) -> TwoSided:
    """Code a formula with a response.

    ``.`` stands for all variables of the codebook but those of the response, those `excluded`, such
    as weights, and fixed effects, which are read with `absorb`. A category on the left has at most
    `most` levels. An offset is subtracted from the response, but with a link it is a part of the
    linear predictor.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), age=(0, 100), sex=["F", "M"])
    >>> both = two_sided("log(income + 1) ~ age * sex", cb)
    >>> both.response.names, both.terms.names
    (('log(income + 1)',), ('sex[T.M]', 'age', 'age:sex[T.M]'))
    >>> two_sided("sex ~ age", cb).joint.names
    ('age', 'sex[T.M]')
    """
    book = checked_codebook(codebook)
    formula, fixed = split_fixed(formula, book) if absorb else (formula, ())
    left_out = {*excluded, *(name for code in fixed for name in variables_in(code))}
    parsed = parsed_formula(formula, [name for name in book if name not in left_out])
    check_removed(parsed, book)
    parsed, known = with_fixed(parsed, fixed), None
    if linked:
        parsed, offset, known = _with_offset(parsed, book)
    else:
        parsed, offset = _less_offset(parsed, book)
    code = _response(parsed)
    if not parsed.predictors and not parsed.intercept:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} has nothing on its right-hand side; name at least "
            f"one variable, or write '{shorten(code)} ~ 1' for the mean"
        )
    if (code,) in parsed.predictors:
        raise FormulaError(
            f"{shorten(code)!r} is the response and a term; remove it from the right-hand side"
        )
    match compile_factor(code, book):
        case Category(levels=levels, ordered=ordered) if len(levels) > most:
            fewer = "two" if most == 2 else f"{most} at most"
            family = "ordinal" if ordered else "multinomial"
            raise FormulaError(
                f"the response {shorten(code)!r} is a category of {len(levels)} levels; it must "
                f"be a number or have {fewer}: compare it with one, {shorten(code)} == "
                f"{levels[0]!r} ~ ..." + f', or write dp_glm with family="{family}"' * (most == 2)
            )
        case Category(contrast=contrast) if contrast is not None:
            raise FormulaError(
                f"the response {shorten(code)!r} has a contrast; a response is the indicators of "
                "its levels but the first: write the variable alone"
            )
        case Basis():
            raise FormulaError(
                f"the response {shorten(code)!r} has several columns; write one response"
            )
    left = replace(parsed, predictors=parsed.response, intercept=True)
    terms = one_side(parsed, book)
    return TwoSided(one_side(left, book), terms, parsed.intercept, offset, known, fixed)


def _offsets(parsed: ParsedFormula, book: Codebook) -> tuple[ParsedFormula, list[ast.expr], str]:
    offsets = [term for term in parsed.predictors if any(map(_offset, term))]
    arguments = []
    for term in offsets:
        argument = _offset(term[0])
        if argument is None or len(term) > 1:
            raise FormulaError(
                f"{shorten(':'.join(term))!r}: an offset is a term of its own, offset(x)"
            )
        as_real(compile_factor(argument, book))
        arguments.append(syntax(argument))
    predictors = tuple(term for term in parsed.predictors if term not in offsets)
    written = " + ".join(term[0] for term in offsets)
    return replace(parsed, predictors=predictors), arguments, written


def _with_offset(parsed: ParsedFormula, book: Codebook) -> tuple[ParsedFormula, str, Design | None]:
    """Return the sum of all offsets as a column of its own."""
    parsed, arguments, written = _offsets(parsed, book)
    if not arguments:
        return parsed, "", None
    total = reduce(lambda one, other: ast.BinOp(one, ast.Add(), other), arguments)
    code = ast.unparse(total)
    offset = one_side(replace(parsed, predictors=((code,),), intercept=True), book)
    low, high = float(offset.lower[0]), float(offset.upper[0])
    if not max(abs(low), abs(high)) <= LARGEST_OFFSET:
        raise FormulaError(
            f"{shorten(written)!r} runs from {low:.4g} to {high:.4g} by its declared bounds, where "
            f"offsets are from {-LARGEST_OFFSET:g} to {LARGEST_OFFSET:g}, on the scale of log odds "
            "or a log rate; declare narrower bounds, or write offset(log(x)) for an exposure x"
        )
    return parsed, written, offset


def _less_offset(parsed: ParsedFormula, book: Codebook) -> tuple[ParsedFormula, str]:
    """Subtract offsets from the response: their slopes are 1."""
    less, arguments, written = _offsets(parsed, book)
    if not arguments:
        return parsed, ""
    left = code = _response(parsed)
    for argument in arguments:
        code = ast.unparse(ast.BinOp(syntax(code), ast.Sub(), argument))
    if not isinstance(compile_factor(left, book), Real):
        raise FormulaError(
            f"{shorten(written)!r}: an offset needs dp_lm and a numeric response, and "
            f"{shorten(left)!r} is not a number; of a rate or a log odds it needs dp_glm"
        )
    return replace(less, response=((code,),)), written


def _offset(code: str) -> str | None:
    match syntax(code):
        case ast.Call(func=ast.Name(id="offset"), args=[argument], keywords=[]):
            return ast.unparse(argument)
    return None


def two_levels(coded_sides: TwoSided) -> TwoSided:
    """Read a response declared as a number from 0 to 1 as the levels 0 and 1.

    Rows with other values are incomplete then.

    >>> import dpmodels as dp
    >>> both = two_sided("y ~ x", dp.codebook(y=(0, 1), x=(0, 9)))
    >>> both.response.names, two_levels(both).response.names
    (('y',), ('y[T.1]',))
    """
    response = coded_sides.response
    match response.blocks[0].factors[0]:
        case Real(variable=str() as name, lower=0.0, upper=1.0):
            declared = response.codebook[name]
        case _:
            return coded_sides
    if not isinstance(declared, Numeric) or name in coded_sides.terms.codebook:
        return coded_sides
    levels = Categorical((0, 1), declared.label, missing=declared.missing, ordered=True)
    parsed = ParsedFormula(response.formula, (), ((quote(name),),), intercept=True)
    return replace(coded_sides, response=one_side(parsed, Codebook({name: levels})))


def _response(parsed: ParsedFormula) -> str:
    if not parsed.response:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} has no response; write 'response ~ a + b'"
        )
    if len(parsed.response) > 1 or len(parsed.response[0]) > 1:
        listed = " + ".join(":".join(term) for term in parsed.response)
        raise FormulaError(
            f"the left side of the formula, {shorten(listed)!r}, is not one variable; write one "
            "response, sums and products of variables inside I(). Several variables are described "
            "by groups with dp_summary('a + b ~ group')"
        )
    return parsed.response[0][0]


def one_side(parsed: ParsedFormula, book: Codebook) -> Design:
    """Code the predictors; there may be none."""
    variables = used_codebook(parsed.codes, book)
    return of_blocks(parsed.text, variables, code_terms(parsed, book) if parsed.predictors else ())


# Formulas of two sets of columns, ``x1 + x2 ~ y1 + y2``.


@dataclass(frozen=True)
class TwoSets:
    """Both sides of a formula, coded from the codebook alone."""

    formula: str
    left: Design
    right: Design

    @property
    def joint(self) -> Design:
        """The columns of the left side, then those of the right, as one design."""
        book = of_variables({**self.left.codebook, **self.right.codebook})
        return of_blocks(self.formula, book, self.left.blocks + self.right.blocks)


def two_sets(formula: str, codebook: Codebook | None) -> TwoSets:
    """Code both sides of a formula, neither of which has a constant.

    ``.`` on the right stands for all variables that the left side leaves.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(a=(0, 1), b=(0, 1), sex=["F", "M"])
    >>> both = two_sets("a + b ~ sex", cb)
    >>> both.left.names, both.right.names
    (('a', 'b'), ('sex[T.M]',))
    """
    parsed, book = known_formula(formula, codebook)
    if not parsed.response or not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r}: expected columns on both sides; write "
            "'x1 + x2 ~ y1 + y2'"
        )
    if not parsed.intercept:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} removes the constant, but columns are centred at "
            "their means: leave out '- 1' or '0 +'"
        )
    left = one_side(replace(parsed, predictors=parsed.response), book)
    result = TwoSets(parsed.text, left, one_side(parsed, book))
    shared = sorted(set(result.left.names) & set(result.right.names))
    if shared:
        raise FormulaError(
            f"{shorten(shared[0])!r} is on both sides of {shorten(parsed.text)!r}; remove it from "
            "one"
        )
    return result


OTHER: Final = "Other"
# A choice: the part of the budget that buys the numbers of rows by level.
COUNTS_SHARE: Final = 0.05
# Variables and the levels of each, as printed, that are merged.
Merged = tuple[tuple[str, tuple[str, ...]], ...]


def lumpable(sides: TwoSided) -> dict[str, Category]:
    """Return the factors whose levels may be merged, by variable.

    Variables that the terms name by themselves and nowhere inside an expression, where a level may
    be meant; with a third level, so that two can be merged.
    """
    factors = {
        factor.code: factor
        for block in sides.terms.blocks
        for factor in block.factors
        if isinstance(factor, Category)
    }
    codes = {factor.code for block in sides.terms.blocks for factor in block.factors}
    codes |= {factor.code for block in sides.response.blocks for factor in block.factors}
    return {
        name: factors[quote(name)]
        for name in sides.terms.codebook
        if quote(name) in factors
        and len(factors[quote(name)].levels) > 2
        and sum(name in variables_in(code) for code in codes) == 1
    }


def small_levels(levels: tuple[str, ...], counts: Floats, minimum: float) -> tuple[str, ...]:
    """Return the levels to merge: those counted less than `minimum`, if there are two.

    The level with the largest count stays, and a declared level "Other" is one of those merged.

    >>> small_levels(("a", "b", "c", "d"), np.array([90.0, 3.0, 50.0, -2.0]), 10)
    ('b', 'd')
    >>> small_levels(("a", "b", "c"), np.array([4.0, 3.0, 2.0]), 10)
    ('b', 'c')
    >>> small_levels(("a", "b", "c"), np.array([40.0, 30.0, 2.0]), 10)
    ()
    """
    largest = levels[int(np.argmax(counts))]
    small = [
        level
        for level, count in zip(levels, counts.tolist(), strict=True)
        if level != largest and (count < minimum or level == OTHER)
    ]
    return tuple(small) if len(small) > 1 else ()


def merged_book(book: Codebook, sides: TwoSided, merged: Merged) -> Codebook:
    """Return the codebook of the levels that are left, "Other" the last.

    FrameError for levels that the formula does not have, in a file.
    """
    factors, changed = lumpable(sides), dict(book)
    for name, levels in merged:
        printed = tuple(map(str, factors[name].levels)) if name in factors else ()
        if not 1 < len(set(levels)) < len(printed) or not set(levels) <= set(printed):
            raise FrameError(f"release.lumped: {name!a} does not have such levels to merge")
        left = tuple(level for level in printed if level not in levels and level != OTHER)
        changed[name] = Categorical((*left, OTHER), book[name].label)
    return Codebook(changed)


def lumped_sides(merged_sides: TwoSided, written: TwoSided, merged: Merged) -> TwoSided:
    """Let a formula coded by the levels that are left read rows of all declared levels."""
    codes: dict[str, Floats] = {}
    for name, levels in merged:
        printed = tuple(map(str, lumpable(written)[name].levels))
        left = [level for level in printed if level not in levels and level != OTHER]
        codes[name] = np.array([left.index(x) if x in left else len(left) for x in printed], float)
    terms = merged_sides.terms
    blocks = tuple(
        replace(block, factors=tuple(_reading(factor, codes) for factor in block.factors))
        for block in terms.blocks
    )
    return replace(merged_sides, terms=of_blocks(terms.formula, written.terms.codebook, blocks))


def _reading(factor: Factor, codes: Mapping[str, Floats]) -> Factor:
    """Return a factor that merges the levels of the columns that it reads."""
    evaluate: Callable[[Columns], Floats] = factor.evaluate
    if not isinstance(factor, Category) or not any(quote(name) == factor.code for name in codes):
        return factor
    name = next(name for name in codes if quote(name) == factor.code)

    def merging(columns: Columns) -> Floats:
        column = columns[name]
        missing = np.isnan(column)
        places = codes[name][np.where(missing, 0, column).astype(np.intp)]
        return evaluate({**columns, name: np.where(missing, np.nan, places)})

    return replace(factor, evaluate=merging)


def level_blocks(sides: TwoSided) -> tuple[Block, ...]:
    """Return the indicators of all levels of the factors that may be merged."""
    return tuple(
        Block(tuple(map(str, x.levels)), (x,), (np.eye(len(x.levels)),), (name,))
        for name, x in lumpable(sides).items()
    )
