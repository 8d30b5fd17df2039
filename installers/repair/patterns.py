r"""How tools say what is wrong: the forms of Python, pytest, pip, compilers and linkers. uv's are in `resolution`.

Every form was seen in the output of the tool that it belongs to. `\1` in a subject is the first group of the form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from installers.repair.kinds import Kind


@dataclass(frozen=True)
class Pattern:
    """One form of a message.

    Attributes:
        subject: a template for the match; of several patterns that meet the same text, all count.
    """

    kind: Kind
    regex: re.Pattern[str]
    subject: str = r"\1"


def _of(kind: Kind, *rows: tuple[str, str] | str) -> tuple[Pattern, ...]:
    """Return patterns of one kind; a row that is no pair has its first group as the subject."""
    pairs = ((row, r"\1") if isinstance(row, str) else row for row in rows)
    return tuple(Pattern(kind, re.compile(regex, re.MULTILINE), subject) for regex, subject in pairs)


_IMPORTS = (
    *_of(
        Kind.MISSING_MODULE,
        r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?",
        r"Error while finding module specification for '([\w.]+)'",
        (r"^(?:E +)?(?:[\w.]+: )?(?:Error importing|Cannot import) plugin '([\w.]+)'", r"\1"),
    ),
    *_of(
        Kind.MISSING_NAME,
        (r"ImportError: cannot import name '(\w+)' from '([\w.]+)'", r"\2:\1"),
        (
            r"^(?:E|>)? *(?:\d+ )?from ([\w.]+) import [^\n]*\n(?:E? *\^+ *\n)?(?:E? *)ImportError: cannot import name "
            r"'?(\w+)'?$",
            r"\1:\2",
        ),
        (r"ImportError: cannot import name '?(\w+)'?(?:$| \(| \[)", r"?:\1"),
    ),
    *_of(
        Kind.MISSING_ATTRIBUTE,
        (r"AttributeError: module '?([\w.]+)'? has no attribute '?(\w+)'?", r"\1:\2"),
        (r"AttributeError: (?:type object )?'([\w.]+)' (?:object )?has no attribute '(\w+)'", r"\1:\2"),
    ),
    *_of(
        Kind.UNEXPECTED_ARGUMENT,
        (r"TypeError: ([\w.]+)\(\) got an unexpected keyword argument '(\w+)'", r"\1:\2"),
    ),
)

_NATIVE = (
    *_of(
        Kind.MISSING_HEADER,
        r"fatal error: '?([\w./+-]+\.h(?:pp|xx|h)?)'?(?:: No such file or directory| file not found)",
        (r"^Package '?([\w.+-]+)'?, required by 'virtual:world', not found", r"\1.pc"),
        (r"^(?:[ \t]*|.*: )No package '([\w.+-]+)' found", r"\1.pc"),
        (r"(?:Dependency|ERROR: Dependency) \"([\w.+-]+)\" not found, tried pkgconfig", r"\1.pc"),
        (r"Please make sure the libxml2 and libxslt development packages are installed", "libxml/xmlversion.h"),
        (r"The headers or library files could not be found for zlib", "zlib.h"),
        (r"The headers or library files could not be found for jpeg", "jpeglib.h"),
        (r"Could not find openssl via pkg-config|Could not find directory of OpenSSL installation", "openssl/ssl.h"),
    ),
    *_of(
        Kind.MISSING_LIBRARY,
        (r"ld: cannot find (-l[\w.+-]+)", r"\1"),
        (r"/ld: cannot find (lib[\w.+-]+\.(?:so|a))", r"\1"),
        r"(lib[\w+-]{1,99}(?:\.\d+)*\.so(?:\.\d+)*): cannot open shared object file",
        r"cannot load library '?(lib[\w.+-]+\.so(?:\.\d+)*)'?",
        r"[Cc]ould not find (?:lib )?(?:or load )?(lib[\w+-]+\.so(?:\.\d+)*)",
    ),
    *_of(
        Kind.MISSING_TOOL,
        r"^(?:[\w/.-]+: )?(?:/bin/)?(?:ba|da)?sh: (?:line )?\d+: ([\w.+-]+): (?:command )?not found",
        r"^(?:[\w/.-]+: )?(?:/usr/bin/)?env: \W?([\w.+-]+)\W?: No such file or directory",
        r"unable to execute '([\w.+-]+)': No such file or directory",
        r"error: command '([\w./+-]+)' failed: No such file or directory",
        r"error: \[Errno 2\] No such file or directory: '([\w+-]+)'$",
        r"subprocess\.py[\s\S]{0,1500}?No such file or directory: '([\w+-][\w.+-]*)'",
        (r"No such file or directory: '([\w+-][\w.+-]*)': '\1'", r"\1"),
        r"^Error: ([\w+-]+) executable not found",
        r"ERROR: Program or command '([\w.+-]+)' not found",
        r"ERROR: Program '([\w.+ -]+?)' not found or not executable",
        (r"EnvironmentError: ([\w-]+_config) not found|OSError: (mysql_config) not found", r"\1\2"),
        (r"Can not find valid pkg-config name", "pkg-config"),
        (r"A GDAL API version must be specified|gdal-config: ?not found|Could not find gdal-config", "gdal-config"),
        (r"ERROR: Unknown compiler\(s\): \[\['c\+\+'", "g++"),
        (r"ERROR: Unknown compiler\(s\): \[\[(?!'c\+\+'|'\w*fort)", "gcc"),
        (r"ERROR: Unknown compiler\(s\): \[\['\w*fort", "gfortran"),
        (r"no Fortran (?:90 )?compiler found|No CMAKE_Fortran_COMPILER could be found", "gfortran"),
        (r"No CMAKE_C_COMPILER could be found|error: linker `cc` not found", "gcc"),
        (r"No CMAKE_CXX_COMPILER could be found", "g++"),
        (
            r"CMake must be installed to build|Problem with the CMake installation|Could not find CMake executable",
            "cmake",
        ),
        (
            r"can't find Rust compiler|[Cc]argo, the Rust package manager, is not installed|rustc, version .*not found",
            "cargo",
        ),
        (r"Bad git executable|git(?: is not|: command not) found|Git executable .* not found", "git"),
        (r"No pandoc was found", "pandoc"),
        (r"Couldn't find ffmpeg|ffmpeg (?:is )?not found|No ffmpeg exe could be found", "ffmpeg"),
        (r"failed to execute (?:\w+\()?\W*'dot'|\"dot\" not found in path", "dot"),
        (r"JAVA_HOME is not set|Java gateway process exited|Unable to find java", "java"),
        (r"'chromedriver' executable needs to be in PATH|Unable to obtain driver for chrome", "chromedriver"),
        (r"'geckodriver' executable needs to be in PATH|Unable to obtain driver for firefox", "geckodriver"),
    ),
)

_LIBRARY_MESSAGES = _of(
    Kind.MISSING_LIBRARY,
    (r"failed to find libmagic", "libmagic.so.1"),
    (r"The 'enchant' C library was not found", "libenchant-2.so.2"),
    (r"no library called \"(?:lib)?cairo(?:-2)?\" was found", "libcairo.so.2"),
    (r"cannot load library 'gobject-2\.0", "libgobject-2.0.so.0"),
    (r"cannot load library 'pango-?1", "libpango-1.0.so.0"),
    (r"sndfile library not found", "libsndfile.so.1"),
    (r"PortAudio library not found", "libportaudio.so.2"),
    (r"Unable to find zbar shared library", "libzbar.so.0"),
    (r"usb\.core\.NoBackendError", "libusb-1.0.so.0"),
    (r"Could not find lib geos_c|Could not find the GEOS library", "libgeos_c.so.1"),
    (r"Could not find the GDAL library", "libgdal.so"),
    (r"Could not find the SpatiaLite library|Unable to load the SpatiaLite library", "mod_spatialite.so"),
    (r"MagickWand shared library not found", "libMagickWand-6.Q16.so.6"),
    (r"Could not find libvips|libvips(?:-cpp)?\.so\.42", "libvips.so.42"),
    (r"Unable to find libsodium|libsodium not found", "libsodium.so.23"),
)
"""What programs say of libraries that they look for by themselves: the file that it comes down to on Debian."""

_PYTEST = (
    *_of(
        Kind.MISSING_PLUGIN,
        r"Error importing plugin \"([\w.-]+)\"",
        r"Missing required plugins: ([\w.,= <>-]+)",
        r"ImportError: Plugin ([\w.-]+) could not be imported",
    ),
    *_of(Kind.UNKNOWN_HOOK, r"unknown hook '(\w+)' in plugin"),
    *_of(Kind.MISSING_FIXTURE, r"fixture '([\w.-]+)' not found"),
    *_of(Kind.UNKNOWN_MARK, r"'(\w+)' not found in `markers` configuration option", r"Unknown pytest\.mark\.(\w+)"),
    *_of(
        Kind.ASYNC_PLUGIN,
        (r"async def functions? (?:are|is) not natively supported", ""),
        (r"coroutine '[\w.]+' was never awaited", ""),
    ),
    *_of(Kind.UNKNOWN_INI, r"Unknown config (?:option|ini key): ([\w.]+)"),
)

_BUILD = (
    *_of(Kind.USE_2TO3, (r"use_2to3 is invalid", "")),
    *_of(
        Kind.CYTHON_LANGUAGE,
        (r"^[ \t]*Error compiling Cython file:|Cython\.Compiler\.Errors\.\w+", ""),
    ),
    *_of(
        Kind.OLD_WHEEL,
        (r"bdist_wheel\.py\", line \d+, in egg2dist[\s\S]{0,400}?not NoneType", ""),
        (r"error: invalid command 'bdist_wheel'", "bdist_wheel"),
        (r"'bdist_wheel' object has no attribute 'egg2dist'", ""),
    ),
    *_of(
        Kind.STRICT_METADATA,
        (r"packaging\.version\.InvalidVersion: Invalid version", "version"),
        (r"setup command: '\w+' must be (?:a )?string or list of strings containing valid", "requirement"),
        (r"InvalidRequirement: |RequirementParseError: ", "requirement"),
        (r"Invalid dash-separated key|Invalid dash-separated option", "dashes"),
        (r"Invalid uppercase key|Usage of uppercase key", "dashes"),
        (r"configuration error: `?project\.license", "licence"),
        (r"configuration error: `?project`? must", "project"),
        (r"extras_require.* must be a dictionary", "extras"),
    ),
    *_of(Kind.FLAT_LAYOUT, (r"Multiple top-level (?:packages|modules) discovered in a flat-layout", "")),
    *_of(
        Kind.NO_VERSION_FROM_VCS,
        (r"setuptools[-_]scm was unable to detect version", "setuptools-scm"),
        (r"Versioning for this project requires either an sdist tarball", "pbr"),
        (r"Cannot find the version number from SCM|PDM_BUILD_SCM_VERSION", "pdm-backend"),
        (r"This does not appear to be a Git project|poetry-dynamic-versioning", "poetry-dynamic-versioning"),
    ),
    *_of(
        Kind.BINARY_MISMATCH,
        (r"A module that was compiled using NumPy 1\.x cannot be run in", "numpy"),
        (r"numpy\.(?:dtype|ndarray) size changed, may indicate binary incompatibility", "numpy"),
        (r"numpy\.core\.(?:multiarray|umath) failed to import", "numpy"),
        (r"module compiled against (?:API|ABI) version", "numpy"),
        (r"RuntimeError: .*greenlet.* size changed|greenlet\.greenlet size changed", "greenlet"),
    ),
)

_SURROUNDINGS = (
    *_of(
        Kind.NEEDS_DISPLAY,
        (r"no display name and no \$DISPLAY environment variable", "tk"),
        (r"could not connect to display|Could not load the Qt platform plugin|Could not find the Qt platform", "qt"),
        (r"No available video device|video system not initialized", "sdl"),
        (
            r"[Cc]annot connect to X server|Unable to open display|NoSuchDisplay|DisplayNameError|an't open display",
            "x11",
        ),
        (r"Gtk couldn't be initialized|[Cc]ould not open display", "x11"),
        (r"Cannot load backend '\w+' which requires the '\w+' interactive framework", "matplotlib"),
    ),
    *_of(
        Kind.NEEDS_GPU,
        (
            r"Found no NVIDIA driver|no CUDA-capable device|Torch not compiled with CUDA|CUDA driver version",
            "cuda",
        ),
        (
            r"libcuda\.so(?:\.\d+)?: cannot open|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|No CUDA GPUs are available",
            "cuda",
        ),
        (r"pyopencl\S*LogicError: clGetPlatformIDs failed", "opencl"),
    ),
    *_of(
        Kind.LOCALE,
        (r"locale\.Error: unsupported locale setting", ""),
        (r"unknown locale: ([\w.-]+)", r"\1"),
        (r"will abort further execution because Python .*was configured to use ASCII", ""),
    ),
    *_of(
        Kind.TIME_ZONE,
        (r"ZoneInfoNotFoundError: ['\"]?No time zone found with key", "data"),
        (r"[Cc]an(?:not|'t| not) find any timezone configuration|UnknownTimeZoneError: 'local'", "local"),
    ),
    *_of(
        Kind.USER,
        (r"getpwuid\(\): uid not found", ""),
        (r"No username set in the environment", ""),
    ),
    *_of(
        Kind.GIT_IDENTITY,
        (r"Please tell me who you are|empty ident name|unable to auto-detect email address", ""),
    ),
    *_of(
        Kind.MEMORY_LIMIT,
        (r"^(?:E +)?MemoryError$|virtual memory exhausted|cc1plus: out of memory|Cannot allocate memory", ""),
    ),
)

_MESSAGES = _of(
    Kind.TEXT,
    (r"Descriptors cannot (?:not )?be created directly", "protobuf-descriptors"),
    (r"\[pytest\] section in setup\.cfg files is no longer supported", "setup-cfg-section"),
    (r"object of type 'MarkDecorator' has no len\(\)", "marked-parameters"),
    (r"yield tests were removed in pytest 4", "yield-tests"),
    (r"Fixture \"?\w+\"? called directly", "fixture-called"),
    (r"Pytest(?:Removed|Deprecated)?RemovedIn(\d+)Warning", r"pytest-removed-in-\1"),
    (r"PytestRemovedIn(\d+)Warning", r"pytest-removed-in-\1"),
    (r"has been moved to the `pydantic-settings` package|PydanticImportError|PydanticUserError", "pydantic-2"),
    (r"Not supported URL scheme http\+docker", "docker-scheme"),
    (r"needs? at least Sphinx v(\d+)", r"sphinx-\1"),
    (r"lxml\.html\.clean module is now a separate project", "lxml-clean"),
    (r"load\(\) missing 1 required positional argument: 'Loader'", "yaml-loader"),
    (r"Textual SQL expression .* should be explicitly declared as text|Not an executable object: '", "sqlalchemy-2"),
    (r"'type' object is not subscriptable", "subscript-3.9"),
    (r"unsupported operand type\(s\) for \|: '(?:type|NoneType|_GenericAlias|ABCMeta)' and", "union-3.10"),
    (r"mutable default <class '[\w.]+'> for field \w+ is not allowed", "mutable-default-3.10"),
    (r"ValueError: invalid mode: 'r?U", "mode-u-3.10"),
    (r"an integer is required \(got type bytes\)|required field \"(?:type_ignores|lineno)\" missing", "code-3.7"),
    (r"required field \"posonlyargs\" missing", "code-3.7"),
    (r"coroutines is forbidden, use tasks explicitly|Passing coroutines is forbidden", "wait-3.10"),
    (r"There is no current event loop in thread 'MainThread'", "loop-3.13"),
    (r"numpy\.?\w* was removed in the NumPy 2\.0 release|was removed in the NumPy 2\.0 release", "numpy-2"),
)
"""Messages that name their own cause; the subject is what the tables of rules call it."""

SYNTAX_MESSAGES = _of(
    Kind.PYTHON_2_SYNTAX,
    (r"SyntaxError: Missing parentheses in call to '(print|exec)'", r"\1"),
    (r"SyntaxError: (?:multiple exception types must be parenthesized|invalid token$)", "except"),
    (r"SyntaxError: leading zeros in decimal integer literals", "octal"),
    (r"TabError: inconsistent use of tabs", "tabs"),
    (r"NameError: name '(unicode|basestring|xrange|raw_input|unichr|execfile|cmp)' is not defined", r"\1"),
)

PATTERNS: tuple[Pattern, ...] = (
    *_IMPORTS,
    *_NATIVE,
    *_LIBRARY_MESSAGES,
    *_PYTEST,
    *_BUILD,
    *_SURROUNDINGS,
    *_MESSAGES,
    *SYNTAX_MESSAGES,
)
"""All forms but those that need more than one expression."""
