"""manual_page.py on small headers."""

from __future__ import annotations

import manual_page
import pytest

HEADER = """\
/* SPDX-License-Identifier: MIT */
/* thing: what it is.
 *
 * A second paragraph of `it`. */
#define TSLAB_VERSION "1.2.3"

#if 1
#define TSLAB_API
#endif

/* A block; see tslab_free.
 * .dots are no commands.
 * Fails: NULL. */
TSLAB_API void *tslab_malloc(size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZE(1);
TSLAB_API void tslab_free(void *block,
                          int how) TSLAB_NONNULL(1, 2);

/* ---- Parts -----
 *
 * What they are. */

enum tslab_part { TSLAB_ONE };

#if defined(__cplusplus)
}
#endif
"""


def test_each_comment_stands_below_what_it_is_about() -> None:
    page = manual_page.page(HEADER)
    assert "tslab 1.2.3" in page
    assert ".SS Parts\nWhat they are.\n.PP\n.nf\nenum tslab_part { TSLAB_ONE };\n.fi\n" in page
    assert (
        ".PP\n.nf\nvoid *tslab_malloc(size_t bytes);\nvoid tslab_free(void *block, int how);\n.fi\n"
        ".RS\nA block; see \\fBtslab_free\\fP.\n\\&.dots are no commands.\n.PP\nFails: NULL.\n.RE\n"
    ) in page
    assert "thing: what it is.\n.PP\nA second paragraph of \\fIit\\fP.\n" in page


def test_a_header_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="no tslab_malloc"):
        manual_page.page('/* thing */\n#define TSLAB_VERSION "1"\n')
    with pytest.raises(ValueError, match="no TSLAB_VERSION"):
        manual_page.page(HEADER.replace("#define TSLAB_VERSION", "#define VERSION"))
