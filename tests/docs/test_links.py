"""Links between pages lead somewhere, and every page can be reached."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, README, ROOT, all_pages, page_name, read_anchors, read_links


@pytest.mark.parametrize("page", all_pages(), ids=page_name)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    broken = []
    for target in read_links(page):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.is_file():
            broken.append(f"{target}: there is no such file")
        elif anchor and anchor not in read_anchors(found):
            broken.append(f"{target}: the page has no such heading")
    assert not broken, "\n".join(broken)


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / ".mkdocs.yml").read_text()
    missing = [
        page_name(page)
        for page in all_pages()
        if page != README and f": {page.relative_to(DOCS)}\n" not in menu
    ]
    assert not missing, f"Add to nav in .mkdocs.yml: {missing}"


def test_every_how_to_and_reference_page_is_in_the_table_of_the_first_page() -> None:
    linked = set(read_links(DOCS / "index.md"))
    missing = [
        path
        for page in all_pages()
        if (path := page.relative_to(ROOT).as_posix().removeprefix("docs/")).startswith(
            ("howto/", "reference/")
        )
        and path not in linked
    ]
    assert not missing, f"Add to the table in docs/index.md: {missing}"


def test_pages_name_no_path_of_a_machine() -> None:
    found = [
        f"{page_name(page)}: {word}"
        for page in all_pages()
        for word in (f"/{folder}/" for folder in ("home", "root", "work"))
        if word in page.read_text()
    ]
    assert not found
