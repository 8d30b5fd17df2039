from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from miner.crawlers.changelog import Statement, decode, find_statement, is_changelog


def found(text: str, version: str = "1.2.3", path: str = "CHANGES.md") -> Statement | None:
    return find_statement({path: text}, {}, version)


def body(text: str, version: str = "1.2.3", path: str = "CHANGES.md") -> str | None:
    statement = found(text, version, path)
    return None if statement is None else statement.text


def log(new: str, old: str, gap: str = "\n\n", intro: str = "") -> str:
    """A change log with two sections under the given titles."""
    return f"{intro}{new}{gap}- new{gap}{old}{gap}- old\n"


def ruled(title: str, char: str = "-", *, over: bool = False) -> str:
    rule = char * len(title)
    return f"{rule}\n{title}\n{rule}" if over else f"{title}\n{rule}"


DATED = ("1.2.3 (2024-05-01)", "1.2.2 (2024-01-01)")
STYLES = {
    "keep-a-changelog": log(
        "## [1.2.3] - 2024-05-01", "## [1.2.2] - 2024-01-01", intro="# Changes\n\n## [Unreleased]\n\n"
    ),
    "linked": log(
        "## [1.2.3](https://forge.example/v1.2.2...v1.2.3) (2024-05-01)", "## [1.2.2](https://x) (2024)", "\n"
    ),
    "atx-with-v": log("# v1.2.3", "# v1.2.2", "\n"),
    "atx-closed": log("## 1.2.3 ##", "## 1.2.2 ##", "\n"),
    "setext": log(ruled(DATED[0]), ruled(DATED[1]), intro="Changes\n=======\n\n"),
    "overlined": log(ruled("1.2.3", "=", over=True), ruled("1.2.2", "=", over=True)),
    "overlined-and-inset": log("=======\n 1.2.3\n=======", "=======\n 1.2.2\n======="),
    "version-word": log(ruled("Version 1.2.3"), ruled("Version 1.2.2"), "\n\n"),
    "release-word": log(ruled("Release 1.2.3 (May 01, 2024)"), "Release 1.2.2 (Jan 01, 2024)\n---"),
    "named": log(ruled("pkg " + DATED[0], "="), ruled("pkg " + DATED[1], "=")),
    "towncrier": log(ruled("pkg 1.2.3", "="), ruled("pkg 1.2.2", "="), intro=".. towncrier release notes start\n\n"),
    "labelled": log(".. _v1.2.3:\n\n" + ruled("1.2.3"), ".. _v1.2.2:\n\n" + ruled("1.2.2")),
    "anchored": log('<a name="1.2.3"></a>\n## 1.2.3', '<a id="v1.2.2"></a>\n## 1.2.2'),
    "bold": log("**1.2.3** (2024-05-01)", "**1.2.2** (2024-01-01)"),
    "bold-whole": log("**v1.2.3 (2024-05-01)**", "**v1.2.2 (2024-01-01)**"),
    "plain": log(*DATED),
    "plain-emphasised-date": "History\n-------\n1.2.3 *2024-05-01*\n  - new\n\n1.2.2 *2024-01-01*\n  - old\n",
    "plain-with-colon": log("1.2.3:", "1.2.2:"),
    "subsections": log(ruled("1.2.3", "="), ruled("1.2.2", "=") + "\n\n" + ruled("Bugs")),
    "rules-of-tildes": log(ruled("1.2.3 - 2024-05-01", "~"), ruled("1.2.2 - 2024-01-01", "~")),
    "newest-below": f"{ruled('1.2.2')}\n\n- old\n\n{ruled('1.2.3')}\n\n- new\n",
    "inconsistent-depth": log("## 1.2.3", "### 1.2.2", "\n"),
    "windows-lines": log("## 1.2.3", "## 1.2.2", "\r\n\r\n"),
}


@pytest.mark.parametrize("style", STYLES)
def test_section_of_the_new_version_in_style(style: str) -> None:
    for path in ("CHANGES.md", "CHANGES.rst", "CHANGES"):
        assert body(STYLES[style], path=path) == "- new"


@pytest.mark.parametrize("style", STYLES)
def test_a_version_that_is_not_there_has_no_section(style: str) -> None:
    for version in ("1.2", "1.2.30", "11.2.3", "1.2.3rc1", "2.0"):
        assert found(STYLES[style], version) is None


ITEMS = {
    "item": "- 1.2.3: Fixes a bug.\n- 1.2.2: Old.\n",
    "item-without-colon": "- 1.2.3 Fixes a bug.\n- 1.2.2 Old.\n",
    "item-bold": "* **1.2.3** - Fixes a bug.\n* **1.2.2** - Old.\n",
    "item-for-the-releases-extension": "- :release:`1.2.3 <2024-05-01>`\n\nFixes a bug.\n\n- :release:`1.2.2 <2024>`\n",
    "item-before-a-heading": "- 1.2.3: Fixes a bug.\n\nLicense\n-------\nMIT\n",
}


@pytest.mark.parametrize("style", ITEMS)
def test_item_of_the_new_version_in_style(style: str) -> None:
    assert body(ITEMS[style]) == "Fixes a bug."


def test_an_item_goes_on_over_indented_lines() -> None:
    text = "- 1.2.3: Python 3.9 support, 3.10 ready.\n  New: ``x``.\n  Various fixes.\n- 1.2.2: Old.\n"
    assert body(text) == "Python 3.9 support, 3.10 ready.\nNew: ``x``.\nVarious fixes."


def test_a_title_without_version_on_the_same_level_belongs_to_the_section_while_versions_follow() -> None:
    text = "1.2.3\n=====\n\nbefore\n\nWhat's changed\n==============\n\n- new\n\n1.2.2\n=====\n\n- old\n"
    assert body(text) == "before\n\nWhat's changed\n==============\n\n- new"


def test_the_oldest_section_ends_at_the_next_title() -> None:
    assert body("1.2.3\n-----\n\n- new\n\nLicense\n-------\n\nMIT\n") == "- new"


def test_subsections_and_lists_are_kept_as_they_are() -> None:
    text = "## 1.2.3\n\n### Fixed\n\n- a\n  - b\n\n### Added\n\n- c\n\n## 1.2.2\n\n- old\n"
    assert body(text) == "### Fixed\n\n- a\n  - b\n\n### Added\n\n- c"


@pytest.mark.parametrize(
    ("title", "version", "is_about"),
    [
        ("1.2.3", "v1.2.3", True),
        ("1.2.3.0", "1.2.3", True),
        ("1.2.3-rc.1", "1.2.3rc1", True),
        ("2024.5.1 (2024-05-01)", "2024.5.1", True),
        ("24.1", "24.1.0", True),
        ("Changes from 1.2.2 to 1.2.3", "1.2.3", True),
        ("Changes from 1.2.2 to 1.2.3", "1.2.2", False),
        ("1.2.3 (2024.05.01)", "1.2.3", True),
        ("1.2.3 needs Python 3.11", "3.11", True),
        ("1.2.3.4", "1.2.3", False),
        ("x1.2.3", "1.2.3", False),
    ],
)
def test_which_version_a_title_is_about(title: str, version: str, is_about: bool) -> None:
    assert (found(f"## {title}\n\ntext\n", version) is not None) == is_about


def test_a_version_in_prose_in_code_or_in_a_table_is_no_heading() -> None:
    for text in (
        "Since 1.2.3 this is faster.\n\n- x\n",
        "Text about\n1.2.3 and more of it\n\n- x\n",
        "```\n# 1.2.3\n```\n\n- x\n",
        "    tool (1.2.3)    385.0    42.8\n",
        "- requires foo 1.2.3 or later\n",
    ):
        assert find_statement({"CHANGES.md": text}, {"CHANGES.md": text}, "1.2.3") is None


def test_a_number_without_end_is_no_version() -> None:
    text = f"{'1' * 5000}\n====\n\n* no\n\n1.1\n===\n\n* a fix\n"
    found = find_statement({"CHANGES.rst": text}, {}, "1.1")
    assert found is not None
    assert "a fix" in found.text


def test_an_empty_section_is_no_statement_and_the_next_one_counts() -> None:
    assert found("## 1.2.3\n\n## 1.2.2\n\n- old\n") is None
    statement = find_statement({"CHANGES.md": "## 1.2.3\n", "docs/changes.rst": "1.2.3\n-----\n\n- new\n"}, {}, "1.2.3")
    assert statement is not None
    assert (statement.path, statement.line, statement.text) == ("docs/changes.rst", 4, "- new")


def test_a_change_log_comes_before_a_readme() -> None:
    files = {"README.rst": "1.2.3\n-----\nfrom the readme\n", "docs/history.txt": "1.2.3\n-----\nfrom the history\n"}
    assert find_statement(files, {}, "1.2.3").text == "from the history"  # type: ignore[union-attr]
    del files["docs/history.txt"]
    assert find_statement(files, {}, "1.2.3").text == "from the readme"  # type: ignore[union-attr]


def test_one_file_a_version() -> None:
    files = {"docs/releases/1.2.3.rst": "pkg 1.2.3\n=========\n\nNew things.\n", "docs/releases/1.2.2.rst": "Old."}
    statement = find_statement(files, {}, "1.2.3")
    assert statement is not None
    assert (statement.text, statement.how) == ("New things.", "file")


def test_lines_added_below_unreleased_are_the_last_resort() -> None:
    old = "## Unreleased\n\n- known before\n\n## 1.2.2\n\n- old\n"
    new = "## Unreleased\n\n- new\n- known before\n\n## 1.2.2\n\n- old, spelt anew\n"
    statement = find_statement({"CHANGES.md": new}, {"CHANGES.md": old}, "1.2.3")
    assert statement is not None
    assert (statement.text, statement.how) == ("- new", "added-lines")


def test_lines_added_below_another_version_are_not_about_this_one() -> None:
    old, new = "## 1.2.1\n\n- x\n", "## 1.2.2\n\n- late entry\n\n## 1.2.1\n\n- x\n"
    assert find_statement({"CHANGES.md": new}, {"CHANGES.md": old}, "1.2.3") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("CHANGES", True),
        ("CHANGELOG.md", True),
        ("ChangeLog", True),
        ("HISTORY.rst", True),
        ("NEWS.txt", True),
        ("RELEASE_NOTES.md", True),
        ("CHANGELOG-1.x.md", True),
        ("docs/changes.rst", True),
        ("doc/source/whatsnew.rst", True),
        ("docs/releases/1.2.3.md", True),
        ("docs/versionhistory.rst", True),
        ("docs/src/markdown/about/changelog.md", True),
        ("README.rst", True),
        ("README", True),
        ("docs/README.md", False),
        ("changelog/_template.rst", False),
        ("changelog.py", False),
        ("pkg/history.md", False),
        ("newsletter.md", False),
        ("historical.md", False),
        ("docs/changes.html", False),
    ],
)
def test_what_is_a_change_log(path: str, expected: bool) -> None:
    assert is_changelog(path) == expected


def test_bytes_that_are_not_utf8_are_read_and_noted() -> None:
    assert decode("\ufeffcaf\u00e9".encode()) == ("caf\u00e9", None)
    text, note = decode(b"caf\xe9")
    assert text == "caf\u00e9"
    assert note is not None
    assert "byte 3" in note


VERSIONS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6, unique=True
)
LINES = st.lists(
    st.text("abcdefgh -*", min_size=1, max_size=30).map(lambda line: "x" + line.rstrip()), min_size=1, max_size=4
)


@given(
    versions=VERSIONS,
    data=st.data(),
    style=st.sampled_from(["## {}", "# v{} - 2024-01-01", "{}\n-----", "Version {}\n====", "**{}**"]),
)
def test_each_section_of_a_generated_change_log_is_found_whole(
    versions: list[tuple[int, int, int]], data: st.DataObject, style: str
) -> None:
    sections = {".".join(map(str, version)): "\n".join(data.draw(LINES)) for version in sorted(versions, reverse=True)}
    text = "\n\n".join(f"{style.format(version)}\n\n{section}" for version, section in sections.items())
    for version, section in sections.items():
        assert body(f"All changes.\n\n{text}\n", version) == section


@given(st.text(max_size=400), st.text(max_size=200))
def test_any_text_is_read_without_an_error_and_what_is_found_stands_in_it(new: str, old: str) -> None:
    statement = find_statement({"CHANGES.md": new + "\n## 1.2.3\n" + new}, {"CHANGES.md": old}, "1.2.3")
    if statement is not None:
        assert statement.text.strip()
        for line in statement.text.splitlines():
            assert line.strip() in new


@given(
    st.lists(
        st.sampled_from(["# 1.2.3", "1.2.3", "---", "===", "```", "- 1.2.3", "", " x", "**1.2.3**", ".. _1.2.3:"]),
        max_size=12,
    )
)
def test_marks_in_any_order_do_no_harm(lines: list[str]) -> None:
    statement = body("\n".join(lines), str(Version("1.2.3")))
    assert statement is None or statement.strip()
