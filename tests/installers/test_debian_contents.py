"""Which Debian package holds a file: the index of contents, reduced and asked."""

from __future__ import annotations

import pytest
from bench import Known

from installers.debian import Sort, holders, packages_with, ranked, reduced
from installers.workshop import Workshop
from miner.core.reasons import Reason

CONTENTS = """\
bin/sed                                                 utils/sed
usr/bin/pg_config                                       libdevel/libpq-dev
usr/bin/xml2-config                                     libdevel/libxml2-dev
usr/include/openssl/ssl.h                               libdevel/libssl-dev
usr/include/postgresql/libpq-fe.h                       libdevel/libpq-dev
usr/include/wolfssl/openssl/ssl.h                       libdevel/libwolfssl-dev
usr/include/x86_64-linux-gnu/ffi.h                      libdevel/libffi-dev
usr/include/with space.h                                libdevel/libodd-dev
usr/include/zlib.h                                      science/zz-sim,libdevel/zlib1g-dev
usr/lib/postgresql/15/bin/pg_config                     database/postgresql-client-15
usr/lib/x86_64-linux-gnu/libmagic.so                    libdevel/libmagic-dev
usr/lib/x86_64-linux-gnu/libmagic.so.1                  libs/libmagic1
usr/lib/x86_64-linux-gnu/pkgconfig/libxml-2.0.pc        libdevel/libxml2-dev
usr/share/pkgconfig/xproto.pc                           x11/x11proto-dev
usr/aarch64-linux-gnu/include/ffi.h                     devel/libffi-dev-arm64-cross
usr/lib32/libmagic.so.1                                 libs/lib32magic1
usr/include/stdio.h                                     libdevel/libc6-dev-arm64-cross
nonsense

"""
LINES = [line.rstrip("\n") for line in reduced(line.encode() for line in CONTENTS.splitlines(keepends=True))]


@pytest.mark.parametrize(
    ("sort", "name", "expected"),
    [
        ("header", "libpq-fe.h", ("libpq-dev",)),
        ("header", "openssl/ssl.h", ("libssl-dev", "libwolfssl-dev")),
        ("header", "ffi.h", ("libffi-dev",)),
        ("header", "with space.h", ("libodd-dev",)),
        ("header", "zlib.h", ("zlib1g-dev", "zz-sim")),
        ("header", "pq-fe.h", ()),
        ("header", "stdio.h", ()),
        ("library", "libmagic.so.1", ("libmagic1",)),
        ("library", "libmagic.so", ("libmagic-dev",)),
        ("pkg-config", "libxml-2.0", ("libxml2-dev",)),
        ("pkg-config", "xproto", ("x11proto-dev",)),
        ("tool", "pg_config", ("libpq-dev",)),
        ("tool", "sed", ("sed",)),
        ("tool", "libmagic.so.1", ()),
    ],
)
def test_likeliest_package_comes_first(sort: Sort, name: str, expected: tuple[str, ...]) -> None:
    assert ranked(LINES, sort, name) == expected


@pytest.mark.docker
@pytest.mark.index
def test_real_archive_knows_a_header_and_a_tool_and_an_answer_is_a_fact(workshop: Workshop) -> None:
    memo = Known().memo()
    assert packages_with(workshop, memo, "header", "libpq-fe.h")[0] == "libpq-dev"
    assert packages_with(workshop, memo, "tool", "xml2-config")[0] == "libxml2-dev"
    nothing = holders(workshop, memo, "header", "no-such-header-anywhere.h")
    assert nothing.outcome == Reason.SYSTEM_PACKAGE_UNKNOWN
    assert packages_with(workshop, memo, "header", "no-such-header-anywhere.h") == ()
    assert [fact.key.kind for fact in memo.used] == ["install.contents"] * 3
