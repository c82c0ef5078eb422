"""Read the cells of a report back from what was printed."""

import re
from html.parser import HTMLParser

Table = list[list[str]]


class Tables(HTMLParser):
    """Tables, attributes and stray text of a piece of HTML."""

    VOID = ("meta", "img")

    def __init__(self, source: str):
        super().__init__(convert_charrefs=True)
        self.tables: list[Table] = []
        self.captions: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in self.VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ""
        if tag in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif data.strip():
            self.text.setdefault(tag, []).append(data)


def markdown_tables(source: str) -> list[Table]:
    """Rows of each table, the rule under the heads left out."""
    blocks = [b.splitlines() for b in source.split("\n\n") if b.startswith("|")]
    return [
        [
            [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for number, line in enumerate(block)
            if number != 1
        ]
        for block in blocks
    ]


LATEX = {
    r"\textbackslash{}": "\\",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\textasciigrave{}": "`",
    r"{\char34}": '"',
    r"$\sim$": "~",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
    "-{}": "-",
    "$-$": "-",
    r"\{": "{",
    r"\}": "}",
    **{rf"\{c}": c for c in "$&#%_"},
}


def latex_text(source: str) -> str:
    stack = r"\\begin\{tabular\}\[.\]\{@\{\}.@\{\}\}(.*?)\\end\{tabular\}"
    source = re.sub(stack, lambda m: m[1].replace(r"\\", " "), source)
    source = source.replace(r"\newline ", " ")
    keys = "|".join(re.escape(k) for k in sorted(LATEX, key=len, reverse=True))
    return re.sub(keys, lambda m: LATEX[m[0]], source)


def latex_tables(source: str) -> list[Table]:
    blocks = re.findall(r"\\begin\{longtable\}.*?\n(.*?)\\end\{longtable\}", source, re.DOTALL)
    rules = (r"\toprule", r"\midrule", r"\bottomrule", r"\endhead")
    return [
        [
            [latex_text(cell).strip() for cell in line.removesuffix(r" \\").split(" & ")]
            for line in block.splitlines()
            if line not in rules and not line.startswith(r"\multicolumn")
        ]
        for block in blocks
    ]
