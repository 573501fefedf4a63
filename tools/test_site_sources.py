"""site_sources.py on documents of this repository."""

from __future__ import annotations

from site_sources import DOCS, ROOT, content_of, links_of, place_of, relinked


def test_what_lies_outside_of_the_documents_has_a_place_below_source() -> None:
    assert place_of(DOCS / "options.md") == "options.md"
    assert place_of(ROOT / "SECURITY.md") == "source/SECURITY.md"
    assert place_of(ROOT / "include/tslab.h") == "source/include/tslab.h.md"
    assert place_of(ROOT / "dashboards") == "source/dashboards/README.md"
    assert place_of(ROOT / "examples") == "source/examples.md"


def test_links_lead_to_where_things_lie_in_the_site() -> None:
    text = (
        "[a](../include/tslab.h) [b](options.md#x) [c](https://example.org) [d](images/scaling.png)"
    )
    assert relinked(text, "epochs.md") == (
        "[a](source/include/tslab.h.md) [b](options.md#x) [c](https://example.org) "
        "[d](images/scaling.png)"
    )
    assert relinked("[a](../include/tslab.h)", "uses/x.md") == "[a](../include/tslab.h)"
    assert relinked("[a](docs/options.md)", "source/README.md") == "[a](../options.md)"


def test_code_is_left_alone() -> None:
    text = "```c\na[0](../SECURITY.md)\n```\n[a](../SECURITY.md)\n"
    assert relinked(text, "faq.md") == text[: text.rindex("[")] + "[a](source/SECURITY.md)\n"
    assert list(links_of(text, DOCS)) == [ROOT / "SECURITY.md"]


def test_folders_are_lists_and_sources_are_code() -> None:
    assert "- [server](examples/server)\n" in content_of(ROOT / "examples")
    assert content_of(ROOT / "examples/expect.h").startswith("# examples/expect.h\n\n~~~~~~~~h\n")
