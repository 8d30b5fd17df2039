"""What a name, an attribute or a message says about the era of a distribution: rows of knowledge, one a change.

Every row is a change in the release notes of the distribution: what was taken away, and in which version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from installers.repair.kinds import Kind

_GONE = (Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE, Kind.MISSING_MODULE)


@dataclass(frozen=True)
class Bound:
    """One row: where a signature of one of these kinds has a subject of this form, the requirement bounds its cause.

    Attributes:
        bound: what to ask for instead.
        subject: has to match the whole subject; a name alone ("?:Markup") stands where the log does not say of what.
    """

    bound: str
    subject: re.Pattern[str]
    why: str
    kinds: tuple[Kind, ...] = _GONE

    @property
    def name(self) -> str:
        """What edits call it."""
        return f"bound {self.bound}"


def _row(bound: str, subject: str, why: str, *kinds: Kind) -> Bound:
    return Bound(bound, re.compile(subject), why, kinds or _GONE)


def _names(bound: str, module: str, names: str, why: str) -> Bound:
    """Return a row for names that modules of a distribution do not have any more, or that are modules themselves."""
    alternatives = "|".join(names.split())
    return _row(bound, rf"(?:{module}(?:\.\w+)*|\?):(?:{alternatives})|{module}(?:\.\w+)*\.(?:{alternatives})", why)


_WEB = (
    _names(
        "jinja2<3.1",
        "jinja2",
        "Markup escape contextfunction contextfilter environmentfunction environmentfilter evalcontextfunction "
        "evalcontextfilter unicode_urlencode",
        "Jinja2 3.1 took these names away",
    ),
    _names("markupsafe<2.1", "markupsafe", "soft_unicode", "MarkupSafe 2.1 took away soft_unicode"),
    _names(
        "werkzeug<1",
        "werkzeug",
        "contrib cached_property secure_filename generate_password_hash check_password_hash import_string",
        "Werkzeug 1.0 took away contrib and the names of its top level",
    ),
    _names(
        "werkzeug<2.1",
        "werkzeug",
        "BaseResponse BaseRequest safe_str_cmp pbkdf2_hex pbkdf2_bin useragents",
        "Werkzeug 2.1 took these names away",
    ),
    _names(
        "werkzeug<3",
        "werkzeug",
        "url_quote url_quote_plus url_encode url_decode url_unquote url_parse url_join url_unparse",
        "Werkzeug 3.0 took these names away",
    ),
    _names("werkzeug<2.2", "werkzeug", "parse_rule", "Werkzeug 2.2 took parse_rule away"),
    _row("werkzeug<3.1", r"werkzeug:__version__", "Werkzeug 3.1 took __version__ away"),
    _row(
        "werkzeug<2.1",
        r"(?:[\w.]*\.)?(?:open|__init__):as_tuple",
        "Werkzeug 2.1 took away as_tuple",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _names(
        "itsdangerous<2.1",
        "itsdangerous",
        "json TimedJSONWebSignatureSerializer JSONWebSignatureSerializer",
        "itsdangerous 2.1 took these names away",
    ),
    _names("flask<1", "flask", "ext", "Flask 1.0 took away flask.ext"),
    _names(
        "flask<2.3",
        "flask",
        "JSONEncoder JSONDecoder",
        "Flask 2.3 took these names away",
    ),
    _row("flask<2.3", r"Flask:(?:before_first_request|json_encoder|json_decoder)", "Flask 2.3 took these names away"),
    _names("flask<3", "flask", "escape Markup _app_ctx_stack _request_ctx_stack", "Flask 3.0 took these names away"),
    _names("flask<2.1", "flask", "safe_join", "Flask 2.1 took away safe_join"),
    _names(
        "urllib3<2",
        "urllib3",
        "DEFAULT_CIPHERS appengine is_appengine is_appengine_sandbox VerifiedHTTPSConnection six",
        "urllib3 2 took these names away",
    ),
    _row("urllib3<2", r"HTTPResponse:(?:strict|version_string)", "urllib3 2 took these attributes away"),
    _row(
        "urllib3<2",
        r"(?:Retry\.|HTTPResponse\.)?__init__:(?:strict|method_whitelist)",
        "urllib3 2 took these arguments away",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _row(
        "requests<2.32",
        r"docker-scheme",
        "requests 2.32 looks adapters up otherwise than clients of Docker rely on",
        Kind.TEXT,
    ),
    _row(
        "httpx<0.28",
        r"(?:\w*Client\.)?__init__:(?:proxies|app)",
        "httpx 0.28 took away `app` and `proxies`",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _names("click<8.1", "click", "get_os_args get_terminal_size", "click 8.1 took these names away"),
    _names("click<8", "click", "_bashcomplete", "click 8.0 has its completion elsewhere"),
    _row(
        "click<8.2",
        r"(?:CliRunner\.)?__init__:mix_stderr",
        "click 8.2 took away mix_stderr",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _row(
        "starlette<0.21",
        r"(?:TestClient\.)?(?:request|get|post|put|head|delete):allow_redirects",
        "the test client of starlette 0.21 is that of httpx",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _names("marshmallow<4", "marshmallow", "__version_info__", "marshmallow 4 took it away"),
    _row(
        "django<2",
        r"django\.core\.urlresolvers",
        "Django 2.0 took it away",
    ),
    _names(
        "django<3",
        "django",
        "six python_2_unicode_compatible lru_cache available_attrs render_to_response",
        "Django 3.0 took away what it had for Python 2",
    ),
    _names(
        "django<4",
        "django",
        "ugettext ugettext_lazy ugettext_noop ungettext ungettext_lazy force_text smart_text url urlquote is_safe_url",
        "Django 4.0 took these names away",
    ),
    _names("sqlalchemy<1.4", "sqlalchemy", "_ColumnEntity clsregistry", "SQLAlchemy 1.4 has them elsewhere"),
    _row(
        "sqlalchemy<2",
        r"Engine:(?:execute|table_names|has_table|run_callable)|MetaData:bind|Query:from_self",
        "SQLAlchemy 2.0 took these methods away",
    ),
    _row("sqlalchemy<2", r"sqlalchemy-2", "SQLAlchemy 2.0 takes text for SQL no more", Kind.TEXT),
    _row(
        "sqlalchemy<2",
        r"\w*(?:RemovedIn20|MovedIn20)Warning: .*",
        "the project turns warnings about SQLAlchemy 2.0 into errors",
        Kind.WARNING_AS_ERROR,
    ),
)
_DATA = (
    _names(
        "numpy<1.24",
        "numpy",
        "float int bool object complex str typeDict",
        "NumPy 1.24 took away the aliases of Python's types",
    ),
    _row(
        "numpy<1.20",
        r"DeprecationWarning: .*`?np\.(?:float|int|bool|object|complex|str)`? is a deprecated alias.*",
        "NumPy 1.20 warns about the aliases of Python's types, which the project turns into errors",
        Kind.WARNING_AS_ERROR,
    ),
    _names("numpy<1.23", "numpy", "asscalar", "NumPy 1.23 took away asscalar"),
    _names(
        "numpy<2",
        "numpy",
        "float_ complex_ NaN Inf Infinity infty PINF NINF NZERO PZERO unicode_ string_ cast product cumproduct alltrue "
        "sometrue asfarray ComplexWarning VisibleDeprecationWarning round_ mat",
        "NumPy 2.0 took these names away",
    ),
    _row("numpy<2", r"(?:numpy\.)?ndarray:(?:newbyteorder|itemset|ptp)", "NumPy 2.0 took these methods away"),
    _row("numpy<2.4", r"numpy:(?:in1d|trapz)", "NumPy 2.4 took these names away"),
    _row("numpy<2", r"numpy-2", "NumPy 2.0 took names away", Kind.TEXT),
    _row("numpy<2", r"numpy", "what was compiled for NumPy 1 does not run on NumPy 2", Kind.BINARY_MISMATCH),
    _row("numpy<1.25", r"numpy\.testing\.utils", "NumPy 1.25 took it away"),
    _row("numpy<1.18", r"numpy\.testing\.(?:decorators|noseclasses|nosetester)", "NumPy 1.18 took these away"),
    _row("pandas<1", r"(?:DataFrame|Series):(?:ix|get_value|as_matrix|ftypes)", "pandas 1.0 took these methods away"),
    _row(
        "pandas<2",
        r"(?:DataFrame|Series):(?:append|iteritems|mad|weekofyear)|pandas:(?:np|Int64Index|UInt64Index|Float64Index)"
        r"|pandas\.(?:util\.testing|np)|(?:pandas(?:\.\w+)*|\?):Int64Index",
        "pandas 2.0 took these names away",
    ),
    _row("pandas<3", r"(?:DataFrame|Series):applymap", "pandas 3.0 took applymap away"),
    _row(
        "scipy<1.2",
        r"(?:scipy\.misc|\?):(?:imread|imsave|imresize|imrotate|toimage|fromimage)",
        "SciPy 1.2 took these names away",
    ),
    _row("scipy<1.3", r"(?:scipy\.misc|\?):(?:comb|factorial|logsumexp)", "SciPy 1.3 took these names away"),
    _row(
        "scipy<1.14",
        r"(?:scipy\.integrate|\?):(?:simps|trapz|cumtrapz)",
        "SciPy 1.14 took these names away",
    ),
    _row(
        "scipy<1.13",
        r"scipy\.signal:(?:gaussian|hann|hamming|blackman|kaiser)|scipy\.linalg:(?:tril|triu)",
        "SciPy 1.13 took these away",
    ),
    _row("scikit-learn<0.20", r"sklearn\.(?:cross_validation|grid_search|learning_curve)", "gone in scikit-learn 0.20"),
    _row("scikit-learn<0.23", r"sklearn\.externals(?:\.\w+)?|sklearn\.externals:\w+", "gone in scikit-learn 0.23"),
    _row(
        "protobuf<3.21",
        r"protobuf-descriptors",
        "generated code of before protobuf 3.19 does not run on 4.21",
        Kind.TEXT,
    ),
    _row("pydantic<2", r"pydantic-2", "pydantic 2 moved or took away what is used", Kind.TEXT),
    _names("pydantic<2", "pydantic", "ModelMetaclass ModelField", "pydantic 2 took these names away"),
    _row("pyyaml<6", r"yaml-loader", "PyYAML 6 insists on a loader", Kind.TEXT),
)
_TOOLS = (
    _row(
        "importlib-metadata<5",
        r"EntryPoints:get|(?:importlib_metadata|\?):Deprecated\w*",
        "importlib_metadata 5 took away the interface of a dict",
    ),
    _row(
        "attrs<19.2",
        r"(?:attrib|attr\.ib|attr_s|attrs):(?:convert)",
        "attrs 19.2 took away `convert`",
        Kind.UNEXPECTED_ARGUMENT,
    ),
    _row("setuptools<82", r"pkg_resources(?:\.\w+)*", "setuptools 82 took away pkg_resources", Kind.MISSING_MODULE),
    _row(
        "setuptools<81",
        r"\w*Warning: .*pkg_resources is deprecated.*",
        "setuptools 80.9 warns about pkg_resources, which the project turns into an error",
        Kind.WARNING_AS_ERROR,
    ),
    _row(
        "setuptools<81",
        r"\w*Warning: .*[Dd]eprecated call to .*pkg_resources\.declare_namespace.*",
        "setuptools warns about namespaces of pkg_resources, which the project turns into an error",
        Kind.WARNING_AS_ERROR,
    ),
    _row("lxml<5.2", r"lxml-clean", "lxml 5.2 has lxml.html.clean no more", Kind.TEXT),
    _row(
        "sphinxcontrib-applehelp<1.0.5",
        r"sphinx-5",
        "the extensions of Sphinx of 2024 need Sphinx 5",
        Kind.TEXT,
    ),
    _row(
        "docutils<0.22",
        r"docutils\.utils\.error_reporting|(?:docutils\.utils\.error_reporting|\?):ErrorString",
        "docutils 0.22",
    ),
    _row(
        "pyparsing<3",
        r"pyparsing:(?:downcaseTokens|upcaseTokens|operatorPrecedence)|(?:pyparsing|\?):operatorPrecedence",
        "pyparsing 3.0 took these names away",
    ),
    _row(
        "cryptography<39",
        r"lib:(?:GEN_EMAIL|OpenSSL_add_all_algorithms|X509_V_FLAG_\w+|SSL_\w+)",
        "cryptography 39 took away what an older pyOpenSSL calls",
    ),
)


BOUNDS: tuple[Bound, ...] = (*_WEB, *_DATA, *_TOOLS)
"""All rows; of several for one subject, the first that changes something is tried first."""
