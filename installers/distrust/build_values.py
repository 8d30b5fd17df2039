"""Which values of variables may reach a build: words and flags, and no command of somebody's own.

A build hands many variables to a shell, to make or to a compiler driver, which run what stands in them. Sources: GNU
make, "Variables Used by Implicit Rules" and "Communicating Options to a Sub-make"; GCC, "Overall Options" (`-wrapper`,
`-fplugin`, `-specs`) and "Directory Options" (`-B`); CMake, "cmake-env-variables"; Cargo, "Environment Variables";
setuptools-scm, "Overrides".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism

_VERSION = r"[0-9][\w.+!-]*"
_PLAIN = r"[\w.,:+@%=-]*|(?:/(?:usr|lib|opt/build|opt/env|testbed)(?:/(?!\.\.?(?:/|\Z))[\w.+@-]+)*/?)"
_PLACE = r"/(?:usr|lib|opt/build|opt/env|testbed)(?:/(?!\.\.?(?:/|:|\Z))[\w.+-]+)*/?"
_PLACES = rf"{_PLACE}(?::{_PLACE})*"
_WHERE = r"(?:/usr/bin/)?(?:[a-z\d_]+-linux-gnu-)?"
_COMPILER = rf"{_WHERE}(?:gcc|g\+\+|cc|c\+\+|c99|clang|clang\+\+|cpp|gfortran|f77|f95)(?:-\d+)?"
_BINUTIL = rf"{_WHERE}(?:gcc-)?(?:ld(?:\.gold|\.bfd|\.lld)?|ar|ranlib|nm|strip|objcopy|as)(?:-\d+)?"
_FLAG = (
    r"-(?:D(?!CMAKE_\w*(?:LAUNCHER|INCLUDE|TOOLCHAIN|COMPILER|LINKER|MAKE_PROGRAM|RULE))(?!\w*EXECUTABLE)\w+(?:=[\w.,+:/-]*)?"
    rf"|U\w+|[IL]{_PLACE}|[IL][\w.]+(?:/(?!\.\.)[\w.+-]+)*|l[\w.+-]+|O\w*|g\w*|w|[mA][\w=.+-]+|j\d*|pthread|pipe|ansi|pedantic"
    r"|shared|static(?:-\w+)*|std=[\w+]+|f(?!plugin|dump|profile-|auto-profile|use-ld|sanitize)[\w=.+-]+|v"
    r"|W(?![lpa],)[\w=+-]+|Wl,(?:--(?:no-)?as-needed|-z,\w+|-O\d|--no-undefined|-s)|-cap-lints[= ]\w+)"
)
_FLAGS = rf"(?:{_FLAG}(?: +{_FLAG})*)?"


def _tool(program: str) -> str:
    return rf"{program}(?: +{_FLAG})*"


_ALLOWED: tuple[tuple[str, str], ...] = (
    # names of variables, what their values look like; the first row that fits a name counts
    (r"MAKE", r"(?:/usr/bin/)?g?make"),
    (r"(?:GNU)?MAKEFLAGS", r"(?:-?j\d*)?"),
    (r"CC|CXX|CPP|FC|F77|F90|LDSHARED|LDCXXSHARED|HOSTCC|CC_FOR_BUILD|CXX_FOR_BUILD", _tool(_COMPILER)),
    (r"LD|AR|RANLIB|NM|STRIP|AS|OBJCOPY", _tool(_BINUTIL)),
    (r"XLA_FLAGS", r"(?:--xla_\w+=[\w,]+ ?)*"),
    (r"ARFLAGS", r"[crsuvDU]*"),
    (r"CMAKE_ARGS", _FLAGS),
    (r"CMAKE_BUILD_TYPE", r"\w+"),
    (r"CMAKE_(?:BUILD_PARALLEL_LEVEL|POLICY_VERSION_MINIMUM)", r"[\d.]+"),
    (r"CMAKE_GENERATOR", r"Ninja|Unix Makefiles"),
    (r"CMAKE_PREFIX_PATH", _PLACES),
    (r"SETUPTOOLS_SCM_PRETEND_VERSION(?:_FOR_\w+)?", _VERSION),
    (r"SETUPTOOLS_USE_DISTUTILS", r"stdlib|local"),
    (r"SETUPTOOLS_ENABLE_FEATURES", r"legacy-editable"),
    (r"(?!CARGO_)\w*FLAGS", _FLAGS),
    (r"(?:PKG_CONFIG_(?:PATH|LIBDIR)|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH)", _PLACES),
)
_FAMILIES = re.compile(r"\w*_WRAPPER|\w*_LAUNCHER|(?:GNU)?MAKE\w*|MFLAGS|CMAKE_\w+|SETUPTOOLS_\w+|DISTUTILS_\w+")
_OF_BUILDS = re.compile(
    r"""(?x)
    CARGO\w* | RUST(?!FLAGS)\w* | GCC_\w+ | COMPILER_PATH | CCC_\w+ | S?CCACHE_\w+ | DISTCC_\w+ | CONFIG_SITE
  | CONFIG_SHELL | LIBTOOL\w* | M4 | AUTO(?:CONF|MAKE|HEADER|RECONF|M4TE|POINT)\w* | ACLOCAL\w* | PERL5\w+ | PERLLIB
  | RUBY\w+ | (?i:NPM|YARN)_\w+ | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_\w+ | GO(?:FLAGS|PATH|ROOT|PROXY|TOOLCHAIN)
  | CGO_\w+ | MESON\w* | NINJA\w* | PKG_CONFIG | INSTALL | GREP | SED | AWK | YACC | LEX | \w*_COMMAND | \w*_HOOK
    """
)
"""Names that no honest build of a project on the index needs to be given, beside those of the rows above."""


def _commands(changed: Changed) -> Iterable[str]:
    for name, value in (*changed.variables, *changed.build_variables):
        shape = _shape(name)
        if (shape is None and _FAMILIES.fullmatch(name)) or (shape is not None and not re.fullmatch(shape, value)):
            yield f"{name}={value}"
    yield from (f"{name}={value}" for name, value in changed.build_variables if _OF_BUILDS.fullmatch(name))


def _shape(name: str) -> str | None:
    return next((shape for names, shape in _ALLOWED if re.fullmatch(names, name)), None)


def _not_plain(changed: Changed) -> Iterable[str]:
    for name, value in changed.build_variables:
        if _shape(name) is None and not re.fullmatch(_PLAIN, value):
            yield f"{name}={value}"


BUILD_VALUES: tuple[Mechanism, ...] = (
    Mechanism(
        "build-command",
        "has a build run something else: no known compiler, more than plain words and flags, or a name no build needs",
        _commands,
    ),
    Mechanism(
        "build-words", "is more than one plain word for a build: a command, a list, or a place elsewhere", _not_plain
    ),
)
