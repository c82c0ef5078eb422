"""Whether two requests are the same: formula, options and budget in one form.

Two requests with the same key have the same answer, which is charged once. White space between the
tokens of a formula, the order of options, options that state their default, and the notation of
numbers (``1``, ``1.0`` and ``1e0``) make no difference.
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Mapping
from typing import Final

from dpmodels.privacy import Guarantee
from dpmodels.request import canonical, plain_option
from dpmodels.sessions.call import AMOUNTS, Call, signature_of
from dpmodels.sessions.shares import fraction

_FORMULAS: Final = ("subset",)
_BUDGET: Final = (*AMOUNTS, "delta")
_LAYOUT: Final = (
    *(tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)
_UNCLEAR: Final = (tokenize.COMMENT, tokenize.ERRORTOKEN)


def request_key(call: Call, table: str, purse: str, total: Guarantee) -> str:
    """Return the digest under which the same request is answered by the same bytes.

    `total` is the guarantee of the purse, whose delta is that of a budget without one.
    """
    options = _options(call)
    options |= {name: _tokens(options[name]) for name in _FORMULAS if name in options}
    budget = _budget(call.options, total)
    request = [table, purse, call.name, _tokens(call.formula), options, budget]
    return hashlib.sha256(canonical(_unified(request))).hexdigest()


def written(call: Call) -> dict[str, object]:
    """Return the options of a call as plain values, without each None that is the default.

    >>> import dpmodels as dp
    >>> written(dp.call.pca("~ .", eps=1.0, ncomp=None, denoise=None, center=True))
    {'eps': 1.0, 'denoise': None, 'center': True}
    """
    parameters = signature_of(call.verb).parameters
    return {
        name: _plain(value)
        for name, value in call.options.items()
        if value is not None or parameters[name].default is not None
    }


def _options(call: Call) -> dict[str, object]:
    """Return the verb's options that are not its defaults."""
    parameters = signature_of(call.verb).parameters
    return {
        name: value
        for name, value in written(call).items()
        if name not in _BUDGET
        and repr(_unified(value)) != repr(_unified(_plain(parameters[name].default)))
    }


def _plain(value: object) -> object:
    """Return an option as a value of JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(element) for name, element in value.items()}
    return plain_option(value)


def _unified(plain: object) -> object:
    """Return a value of JSON in which whole numbers are integers."""
    if isinstance(plain, list | tuple):
        return [_unified(element) for element in plain]
    if isinstance(plain, dict):
        return {name: _unified(element) for name, element in plain.items()}
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def _budget(options: Mapping[str, object], total: Guarantee) -> object:
    """Return the budget of a call: amounts, a share of what is left, or a guarantee."""
    budget, delta = options.get("budget"), options.get("delta")
    if budget is not None:
        return [type(budget).__name__, repr(budget), delta]
    eps, share = options.get("eps"), options.get("share")
    if isinstance(eps, str) and share is None:
        eps, share = None, eps
    if share is not None:
        share = float(fraction("share", share))
    return [eps, share, getattr(total, "delta", 0.0) if delta is None else delta]


def _tokens(formula: object) -> object:
    """Return the tokens of a formula; the formula if only its reader can tell what they are."""
    if not isinstance(formula, str):
        return formula
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(formula.strip()).readline))
    except (tokenize.TokenError, SyntaxError):
        return formula
    if any(token.type in _UNCLEAR for token in tokens):
        return formula
    return [token.string for token in tokens if token.type not in _LAYOUT]
