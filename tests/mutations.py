"""The changes that mutation testing makes: operators, constants, branches, statements, words."""

import ast
from dataclasses import dataclass

COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
# Words of strings that are exchanged: units, directions and what a note is about.
WORDS = (
    ("person", "row"),
    ("at most", "at least"),
    ("lower", "upper"),
    ("above", "below"),
    ("mean", "median"),
    ("log odds", "odds"),
    ("variance", "standard deviation"),
    ("noise", "sampling"),
    ("minimum", "maximum"),
    ("first", "last"),
    ("replace", "add_remove"),
    ("replaced", "removed"),
    ("epsilon", "delta"),
    ("eps", "delta"),
    ("without", "with"),
    (" not ", " "),
    ("%", ""),
)


@dataclass(frozen=True)
class Mutant:
    """Some bytes of a file, and what replaces them."""

    file: str
    line: int
    kind: str
    start: int
    stop: int
    before: str
    after: str

    def applied(self, code):
        """The code of the file with the mutant."""
        return code[: self.start] + self.after.encode("utf-8") + code[self.stop :]


def exchanged(text):
    """A string with the first word of the table that it has exchanged, or None."""
    for pair in WORDS:
        for now, then in (pair, pair[::-1]):
            if now.strip() and now in text:
                return text.replace(now, then)
    return None


def different(node, **fields):
    """The code of a node with some fields replaced."""
    twin = type(node)(**{**dict(ast.iter_fields(node)), **fields})
    return f"({ast.unparse(ast.fix_missing_locations(twin))})"


def of_operators(node):
    """Other operators of an expression, and the opposite of a minimum."""
    match node:
        case ast.Compare(ops=ops):
            for n, operator in enumerate(ops):
                for replacement in COMPARED[type(operator)]:
                    changed_ops = [*ops[:n], replacement(), *ops[n + 1 :]]
                    yield "comparison", node, different(node, ops=changed_ops)
        case ast.BinOp() if type(node.op) in COMPUTED and not isinstance(node.left, ast.JoinedStr):
            yield "arithmetic", node, different(node, op=COMPUTED[type(node.op)]())
        case ast.BoolOp():
            replacement = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and, or", node, different(node, op=replacement)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "dropped not or minus", node, f"({ast.unparse(node.operand)})"
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in EXTREMES:
            prefix = ast.unparse(node.func).removesuffix(name)
            yield "minimum, maximum", node.func, prefix + EXTREMES[name]


def of_constants(node):
    """Other numbers and words."""
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", node, f"({value + 1!r})"
        case ast.Constant(value=float(value)):
            yield "constant", node, f"({value * 1.5 or 1.0!r})"
        case ast.Constant(value=str(value)) if exchanged(value) is not None:
            yield "words", node, repr(exchanged(value))
        case ast.JoinedStr(values=parts):
            for n, part in enumerate(parts):
                text = exchanged(part.value) if isinstance(part, ast.Constant) else None
                if text is not None:
                    changed_parts = [*parts[:n], ast.Constant(text), *parts[n + 1 :]]
                    yield "words", node, different(node, values=changed_parts)


def of_branches(node):
    """Branches exchanged, and statements dropped."""
    match node:
        case ast.IfExp():
            yield "wrong branch", node, different(node, body=node.orelse, orelse=node.body)
        case ast.If(test=test) if not of_types(node):
            yield "wrong branch", test, f"(not ({ast.unparse(test)}))"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "dropped statement", node, "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute(), *_]):
            yield "dropped statement", node, "pass"


def of_types(node):
    """Whether a branch is for a checker of types alone."""
    return "TYPE_CHECKING" in ast.unparse(node.test)


def children(node):
    """The nodes below one, without annotations, docstrings and messages of errors."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.arg() | ast.JoinedStr() | ast.Raise():
            return []
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return []
        case ast.If() if of_types(node):
            return []
        case ast.AnnAssign():
            return [node.value] if node.value is not None else []
        case ast.FunctionDef():
            return [*node.decorator_list, node.args, *node.body]
    return list(ast.iter_child_nodes(node))


def mutants_of(name, code):
    """Every mutant of the code of a file."""
    starts, nodes = [0], [ast.parse(code)]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    while nodes:
        node = nodes.pop()
        nodes += reversed(children(node))
        changes = (*of_operators(node), *of_constants(node), *of_branches(node))
        for kind, place, after in changes:
            start = starts[place.lineno - 1] + place.col_offset
            stop = starts[place.end_lineno - 1] + place.end_col_offset
            before = code[start:stop].decode("utf-8")
            yield Mutant(name, place.lineno, kind, start, stop, before, after)
