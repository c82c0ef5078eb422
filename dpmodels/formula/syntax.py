"""The text of a factor as Python's syntax tree, and the variables it reads.

Nothing is evaluated here or anywhere else in the package.
"""

from __future__ import annotations

import ast
import unicodedata

from dpmodels.errors import FormulaError, shorten

# A choice: longer than any factor, and short of what exhausts Python's parser.
MAX_CODE = 2_000


def syntax(code: str) -> ast.expr:
    """Parse the text of a factor, with names as they are written; nothing is evaluated."""
    if len(code) > MAX_CODE:
        raise FormulaError(
            f"{shorten(code)!r} in the formula has {len(code):,} characters; one factor has at "
            f"most {MAX_CODE:,}"
        )
    code = code.strip()
    try:
        tree = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        raise FormulaError(f"{shorten(code)!r} in the formula is not an expression") from None
    if not code.isascii():
        _restore_names(tree, code.encode())
    return tree


def _restore_names(tree: ast.expr, code: bytes) -> None:
    """Undo that Python brings names to their NFKC form, in which different ones may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            written = code[node.col_offset : node.end_col_offset].decode(errors="replace")
            if folded(written) == node.id:
                node.id = written


def folded(name: str) -> str:
    r"""Return a name as Python reads it where it is an identifier or a keyword argument."""
    return unicodedata.normalize("NFKC", name)


def variables_in(code: str) -> tuple[str, ...]:
    """Return the names a factor reads: variables, quoted or bare, not functions."""
    return tuple(dict.fromkeys(names_in(syntax(code))))


def names_in(node: ast.expr) -> list[str]:
    """Return the names an expression reads, left to right, with repetitions."""
    names, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        quoted = quoted_name(node)
        if quoted is not None:
            names.append(quoted)
        elif isinstance(node, ast.Name):
            names.append(node.id)
        else:
            waiting += reversed(_operands(node))
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
    return shorten(ast.unparse(node), 200)
