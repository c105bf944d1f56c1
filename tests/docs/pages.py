"""Read the documentation: its code blocks, markers, tables and links.

A code block that belongs into a file names it in its first line (`# shop/tasks.py`). An HTML
comment on a line of its own is a marker, which readers do not see: see tests.docs.running.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)")
_MARKER = re.compile(r"^<!-- (?P<words>[a-z ]+) -->$")
_FILE = re.compile(r"^# (?P<path>[\w/]+\.py)(?P<appended> \(at the end\))?$")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<title>.+)$")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One code block. `path` is the file it belongs to, if any; `line` is that of its fence."""

    page: Path
    line: int
    language: str
    text: str
    path: str | None = None
    is_appended: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Marker:
    """A comment that says what a test does at this place of the page."""

    words: str


def all_pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def page_name(path: Path) -> str:
    """The name of a page in a test's id."""
    return str(path.relative_to(ROOT))


def read_items(page: Path) -> list[Block | Marker]:
    """The code blocks and markers of a page in their order."""
    items: list[Block | Marker] = []
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        if marker := _MARKER.match(lines[number]):
            items.append(Marker(marker["words"]))
        if fence := _FENCE.match(lines[number]):
            end = next(
                index for index in range(number + 1, len(lines)) if lines[index].strip() == "```"
            )
            body = [line.removeprefix(fence["indent"]) for line in lines[number + 1 : end]]
            named = _FILE.match(body[0]) if body else None
            items.append(
                Block(
                    page=page,
                    line=number + 1,
                    language=fence["language"],
                    text="\n".join(body) + "\n",
                    path=named and named["path"],
                    is_appended=bool(named and named["appended"]),
                )
            )
            number = end
        number += 1
    return items


def read_prose(page: Path) -> list[str]:
    """The lines of a page that are not in code blocks."""
    prose: list[str] = []
    is_code = False
    for line in page.read_text().splitlines():
        if line.strip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            prose.append(line)
    return prose


def read_section(page: Path, title: str) -> str:
    """The text under the heading `## title`, up to the next one of that level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page.read_text(), re.M | re.S)
    assert found, f"{page_name(page)} has no section {title!r}"
    return found[1]


def read_rows(page: Path) -> Iterator[list[str]]:
    """The cells of every table row of a page, without headings and rulers."""
    for line in read_prose(page):
        if line.startswith("|") and not set(line) <= set("|- "):
            yield [cell.strip() for cell in _CELL_BORDER.split(line)[1:-1]]


def read_links(page: Path) -> Iterator[str]:
    """The targets of the links and pictures of a page that point into the repository."""
    for line in read_prose(page):
        for link in _LINK.finditer(line):
            if not re.match(r"[a-z]+:", link["target"]):
                yield link["target"]


def read_anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as MkDocs makes them."""
    titles = [heading["title"] for line in read_prose(page) if (heading := _HEADING.match(line))]
    return {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles
    }
