"""Modules whose distribution has another name than rules of thumb would find: where to look first, nothing more.

What is found here is looked into like any other candidate, so a wrong row costs time and does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.utils import canonicalize_name

ALIASES: dict[str, tuple[str, ...]] = {
    # module: (distributions, the most likely first)
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "IPython": ("ipython",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "MySQLdb": ("mysqlclient",),
    "OpenSSL": ("pyopenssl",),
    "PIL": ("pillow",),
    "Xlib": ("python-xlib",),
    "_pytest": ("pytest",),
    "apiclient": ("google-api-python-client",),
    "attr": ("attrs",),
    "bs4": ("beautifulsoup4",),
    "builtins": ("future",),
    "cairo": ("pycairo",),
    "corsheaders": ("django-cors-headers",),
    "cv2": ("opencv-python-headless", "opencv-python"),
    "dateutil": ("python-dateutil",),
    "django_filters": ("django-filter",),
    "dns": ("dnspython",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "environ": ("django-environ",),
    "factory": ("factory-boy",),
    "fitz": ("pymupdf",),
    "gi": ("pygobject",),
    "git": ("gitpython",),
    "github": ("pygithub",),
    "gitlab": ("python-gitlab",),
    "google.protobuf": ("protobuf",),
    "googleapiclient": ("google-api-python-client",),
    "grpc": ("grpcio",),
    "hamcrest": ("pyhamcrest",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python",),
    "ldap": ("python-ldap",),
    "magic": ("python-magic",),
    "markdown_it": ("markdown-it-py",),
    "memcache": ("python-memcached",),
    "mpl_toolkits": ("matplotlib",),
    "nacl": ("pynacl",),
    "past": ("future",),
    "paste": ("paste",),
    "paste.deploy": ("pastedeploy",),
    "pkg_resources": ("setuptools",),
    "pptx": ("python-pptx",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pylab": ("matplotlib",),
    "pythonjsonlogger": ("python-json-logger",),
    "rest_framework": ("djangorestframework",),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "ruamel": ("ruamel-yaml",),
    "serial": ("pyserial",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "social_django": ("social-auth-app-django",),
    "socks": ("pysocks",),
    "telegram": ("python-telegram-bot",),
    "tlz": ("toolz",),
    "usb": ("pyusb",),
    "websocket": ("websocket-client",),
    "win32api": ("pywin32",),
    "wx": ("wxpython",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
}

_FORMS = ("{0}", "python-{0}", "py{0}", "{0}-python", "{0}py", "pytest-{0}")
"""How distributions are named after their module."""


def candidates(module: str) -> tuple[str, ...]:
    """Return names of distributions that a module may come from, the most likely first."""
    return tuple(dict.fromkeys(canonicalize_name(name) for name in _names(module) if name))


def is_known(distribution: str, module: str) -> bool:
    """Whether a row says that a module comes from a distribution, whatever else has one of this name."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return any(distribution in ALIASES.get(prefix, ()) for prefix in prefixes)


def _names(module: str) -> Iterator[str]:
    parts = module.strip(".").split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    for prefix in prefixes:
        yield from ALIASES.get(prefix, ())
    for prefix in prefixes[:3]:
        yield prefix.replace(".", "-").strip("_-")
    top = parts[0].strip("_")
    for form in _FORMS:
        if top:
            yield form.format(top)
