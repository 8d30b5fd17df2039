"""Names of Debian packages as projects write them, and the names that the suite of the base image has.

Projects name packages of Ubuntu and of releases of their day. A name in `RENAMED` has another one in bookworm; one
that `needless` knows makes no sense in an image, or is there already. Every entry says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+.]\Z")  # to apt, a dash at the end means "remove it"

RENAMED: dict[str, tuple[str, str]] = {
    # name: (name in bookworm, why)
    "libssl1.0-dev": ("libssl-dev", "OpenSSL 3 is the only one"),
    "libssl1.1": ("libssl3", "OpenSSL 3 is the only one"),
    "libssl1.0.0": ("libssl3", "OpenSSL 3 is the only one"),
    "libffi6": ("libffi8", "new soname"),
    "libffi7": ("libffi8", "new soname"),
    "libtiff4-dev": ("libtiff-dev", "versioned name is gone"),
    "libtiff5-dev": ("libtiff-dev", "transitional name"),
    "libtiff5": ("libtiff6", "new soname"),
    "libjpeg8": ("libjpeg62-turbo", "Ubuntu's name"),
    "libjpeg8-dev": ("libjpeg-dev", "Ubuntu's name"),
    "libjpeg-turbo8": ("libjpeg62-turbo", "Ubuntu's name"),
    "libjpeg-turbo8-dev": ("libjpeg-dev", "Ubuntu's name"),
    "libjpeg62-dev": ("libjpeg-dev", "libjpeg62-turbo took its place"),
    "libpng12-0": ("libpng16-16", "new soname"),
    "libpng12-dev": ("libpng-dev", "versioned name is gone"),
    "libwebp5": ("libwebp7", "new soname"),
    "libwebp6": ("libwebp7", "new soname"),
    "libgdal1h": ("libgdal32", "new soname"),
    "libgdal20": ("libgdal32", "new soname"),
    "libxapian22": ("libxapian30", "new soname"),
    "libgnutls-dev": ("libgnutls28-dev", "versioned name only"),
    "gnutls-dev": ("libgnutls28-dev", "virtual"),
    "libxslt-dev": ("libxslt1-dev", "virtual"),
    "graphviz-dev": ("libgraphviz-dev", "virtual"),
    "libgdal1-dev": ("libgdal-dev", "versioned name is gone"),
    "libproj0": ("libproj25", "new soname"),
    "libreadline6-dev": ("libreadline-dev", "versioned name is gone"),
    "libreadline-gplv2-dev": ("libreadline-dev", "gone"),
    "libncurses5-dev": ("libncurses-dev", "transitional name"),
    "libncursesw5-dev": ("libncurses-dev", "transitional name"),
    "libicu52": ("libicu72", "new soname"),
    "libicu55": ("libicu72", "new soname"),
    "libicu60": ("libicu72", "new soname"),
    "libicu66": ("libicu72", "new soname"),
    "libicu70": ("libicu72", "new soname"),
    "libmysqlclient-dev": ("default-libmysqlclient-dev", "MariaDB took its place"),
    "libmysqlclient20": ("libmariadb3", "MariaDB took its place"),
    "libmysqlclient21": ("libmariadb3", "MariaDB took its place"),
    "mysql-client": ("default-mysql-client", "MariaDB took its place"),
    "mysql-server": ("default-mysql-server", "MariaDB took its place"),
    "libcurl3": ("libcurl4", "new soname"),
    "libcurl3-dev": ("libcurl4-openssl-dev", "new soname"),
    "libcurl-dev": ("libcurl4-openssl-dev", "virtual"),
    "libatlas-dev": ("libatlas-base-dev", "split up"),
    "libblas3gf": ("libblas3", "old soname"),
    "liblapack3gf": ("liblapack3", "old soname"),
    "libzmq-dev": ("libzmq3-dev", "version 2 is gone"),
    "libzmq1": ("libzmq5", "new soname"),
    "libzmq3": ("libzmq5", "new soname"),
    "libsnappy1": ("libsnappy1v5", "new ABI"),
    "libprotobuf-c0-dev": ("libprotobuf-c-dev", "versioned name is gone"),
    "libleveldb1": ("libleveldb1d", "new soname"),
    "libleveldb1v5": ("libleveldb1d", "new soname"),
    "libgit2-24": ("libgit2-1.5", "new soname"),
    "libhdf5-serial-dev": ("libhdf5-dev", "transitional name"),
    "libenchant-dev": ("libenchant-2-dev", "version 1 is gone"),
    "libenchant1c2a": ("libenchant-2-2", "version 1 is gone"),
    "enchant": ("enchant-2", "version 1 is gone"),
    "libgl1-mesa-glx": ("libgl1", "transitional name"),
    "libegl1-mesa": ("libegl1", "transitional name"),
    "libgles2-mesa": ("libgles2", "transitional name"),
    "libgtk-3-0t64": ("libgtk-3-0", "name since the change of time_t"),
    "libglib2.0-0t64": ("libglib2.0-0", "name since the change of time_t"),
    "libasound2t64": ("libasound2", "name since the change of time_t"),
    "libssl3t64": ("libssl3", "name since the change of time_t"),
    "libavcodec-ffmpeg56": ("libavcodec59", "new soname"),
    "libav-tools": ("ffmpeg", "ffmpeg is back"),
    "libgirepository-2.0-dev": ("libgirepository1.0-dev", "not yet"),
    "libwebkitgtk-3.0-0": ("libwebkit2gtk-4.0-37", "version 1 is gone"),
    "qt5-default": ("qtbase5-dev", "gone"),
    "openjdk-7-jdk": ("default-jdk-headless", "one version only"),
    "openjdk-7-jre": ("default-jre-headless", "one version only"),
    "openjdk-8-jdk": ("default-jdk-headless", "one version only"),
    "openjdk-8-jre": ("default-jre-headless", "one version only"),
    "openjdk-8-jdk-headless": ("default-jdk-headless", "one version only"),
    "openjdk-8-jre-headless": ("default-jre-headless", "one version only"),
    "openjdk-11-jdk": ("default-jdk-headless", "one version only"),
    "openjdk-11-jre": ("default-jre-headless", "one version only"),
    "openjdk-11-jdk-headless": ("default-jdk-headless", "one version only"),
    "openjdk-11-jre-headless": ("default-jre-headless", "one version only"),
    "openjdk-21-jdk": ("default-jdk-headless", "one version only"),
    "oracle-java8-installer": ("default-jdk-headless", "gone"),
    "chromium-browser": ("chromium", "Ubuntu's name"),
    "chromium-chromedriver": ("chromium-driver", "Ubuntu's name"),
    "google-chrome-stable": ("chromium", "not of Debian"),
    "firefox": ("firefox-esr", "Debian has the long-lived one"),
    "firefox-geckodriver": ("firefox-esr", "Ubuntu's name"),
    "ttf-dejavu": ("fonts-dejavu", "renamed"),
    "ttf-dejavu-core": ("fonts-dejavu-core", "renamed"),
    "ttf-freefont": ("fonts-freefont-ttf", "renamed"),
    "ttf-liberation": ("fonts-liberation", "renamed"),
    "libpython2.7-dev": ("libpython3-dev", "Python 2 is gone"),
    "python-dev": ("python3-dev", "Python 2 is gone"),
    "python2-dev": ("python3-dev", "Python 2 is gone"),
    "python2.7-dev": ("python3-dev", "Python 2 is gone"),
    "python-tk": ("python3-tk", "Python 2 is gone"),
    "netcat": ("netcat-openbsd", "virtual"),
    "realpath": ("coreutils", "part of it"),
    "iptables-dev": ("libiptc-dev", "split up"),
    "libmozjs-24-bin": ("libmozjs-102-0", "new version"),
    "libboost-python1.58-dev": ("libboost-python-dev", "versioned name is gone"),
    "libzbar0t64": ("libzbar0", "name since the change of time_t"),
    "libmagickwand-6.q16-2": ("libmagickwand-6.q16-6", "new soname"),
    "libmagickwand-6.q16-3": ("libmagickwand-6.q16-6", "new soname"),
    "libgeos-c1": ("libgeos-c1v5", "new ABI"),
    "libspatialindex-c4": ("libspatialindex-c6", "new soname"),
    "libspatialindex-c4v5": ("libspatialindex-c6", "new soname"),
    "libspatialindex-c5": ("libspatialindex-c6", "new soname"),
    "libdb5.1-dev": ("libdb-dev", "versioned name is gone"),
}

_NEEDLESS: tuple[tuple[str, str], ...] = (
    # (names, why)
    (
        r"(?:lib)?python(?:[23](?:\.\d+)?)?(?:-all)?-(?:dev|dbg)|python-dev-is-python3",
        "headers come with the interpreter",
    ),
    (r"python(?:[23](?:\.\d+)?)?(?:-full|-minimal)?|python-is-python[23]|pypy3?(?:-.*)?", "interpreters are layers"),
    (r"python3?(?:\.\d+)?-(?!tk\Z).+|pyqt5-dev-tools", "no environment sees the system's Python packages"),
    (r"virtualenv|pipx|tox|pip|pipenv|poetry|conda|miniconda3?", "from the package index"),
    (
        r"build-essential|make|pkg-config|pkgconf|binutils|gcc|g\+\+|gcc-\d+|g\+\+-\d+|libc6-dev|libstdc\+\+6",
        "tool chain",
    ),
    (
        r"(?:gcc|g\+\+)-(?:\d+-)?multilib|(?:gcc|g\+\+)-.*-linux-gnu.*|libc6-dev-i386|lib32.+|libc6-i386",
        "other machines",
    ),
    (r"ca-certificates|git|patch|procps|netbase|tzdata|apt-utils|bash|coreutils|tar|gzip|sed|grep|apt", "in the base"),
    (
        r"sudo|gosu|dumb-init|tini|systemd.*|init|dbus-user-session|udev|cron|rsyslog|logrotate|upstart",
        "no system runs",
    ),
    (
        r"docker(?:[.-].*)?|containerd(?:\.io)?|podman|buildah|qemu.*|virtualbox.*|vagrant|lx[cd]|snapd?",
        "no engine inside",
    ),
    (
        r"linux-(?:headers|modules|image|tools).*|dkms|kmod|nvidia-.*|cuda-.*|libcudnn.*|libnvidia-.*",
        "the host's kernel",
    ),
    (
        r"apt-transport-https|software-properties-common|python-software-properties|lsb-release|aptitude|wajig",
        "for apt",
    ),
    (r"debconf(?:-utils)?|dpkg-dev|devscripts|debhelper|fakeroot|dh-.*|equivs|lintian|.*-archive-keyring", "packaging"),
    (r"language-pack-.*|locales-all|locales", "the locale is that of the settings"),
    (r"vim.*|nano|emacs.*|less|htop|tmux|screen|mc|man-db|bash-completion|openssh-(?:client|server)|ssh", "for people"),
    (r"texlive.*|latexmk|xindy|libreoffice.*|inkscape|wine.*", "a gigabyte that documents are made with"),
    (
        r"ttf-mscorefonts-installer|ubuntu-.*|google-cloud-sdk|azure-cli|gh|heroku|kubectl|helm|terraform",
        "not Debian's",
    ),
)
_NEEDLESS_NAMES = tuple((re.compile(rf"(?:{pattern})\Z"), why) for pattern, why in _NEEDLESS)


def needless(name: str) -> str | None:
    """Return why a package makes no sense in an image beside what is there, None where it does."""
    return next((why for pattern, why in _NEEDLESS_NAMES if pattern.match(name)), None)


def is_package_name(text: str) -> bool:
    """Whether a text can be the name of a package (Debian policy 5.6.1), and nothing else to apt."""
    return _NAME.match(text) is not None


def settled_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names to install for the names that a project writes: sorted, each once.

    A version (`=1.2*`) or an architecture (`:amd64`) behind a name is left out: only the suite's own is to be had.
    """
    found = set()
    for text in names:
        name = re.split(r"[=:/<>(\s]", text.strip().lower(), maxsplit=1)[0]
        name = RENAMED.get(name, (name, ""))[0]
        if name and needless(name) is None:
            found.add(name)
    return tuple(sorted(found))
