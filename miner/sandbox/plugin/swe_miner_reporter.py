# -*- coding: utf-8 -*-
"""A pytest plug-in that records a test run as JSON lines: what ran, how it ended, and where it was when it died.

It is copied into the container of a test run and loaded by path (``PYTHONPATH=<its folder> pytest -p swe_miner_reporter``);
nothing is installed in the target. This one file runs on Python 2.7 to 3.14 and pytest 4.6 to 9, needs the standard
library only, and does not change what the tests see: no output, no warning, no option, no import of their modules.

Environment (each variable is taken out of the environment when the plug-in is imported, so that a pytest which a test
starts by itself does not report into the same file):

    SWE_MINER_REPORT       the file to append to; without it the plug-in does nothing
    SWE_MINER_PROBE        names of modules, separated by commas: imported after the collection, see ``probe`` below
    SWE_MINER_PROBE_ATTR   the name of an attribute that is looked up in each of them

One line is one event, ASCII only, written by one ``write`` call. ``n`` counts the lines from 0: a gap or a repeat shows
that something else touched the file. Keys without a value are left out. Schema 1:

    session        schema, pytest, python, rootdir            the first line
    collect        nodeid, outcome, [message, longrepr]       a collector (folder, module, class) was collected
    collected      ids, part, parts, total                    the tests that were selected, in chunks
    probe          module, file, value, error                 one imported module; value is the repr of the attribute
    start          nodeid                                     a test begins
    report         nodeid, when, outcome, duration,           one phase of one test; exc is the list of the names of the
                   [exc, message, longrepr, wasxfail,         exception's class and its bases; subtest is its message
                   subtest, worker]
    interrupt      exc, message                               Ctrl-C or pytest.exit
    internalerror  message                                    pytest itself failed
    reportererror  where, message                             this plug-in failed
    finish         exitstatus, [stopped]                      the session reported its own end

Only the controller of pytest-xdist writes. Its workers hang the names of the exception classes on the reports they send.
"""

import json.encoder
import sys

import pytest

SCHEMA = 1
MAX_TEXT = 20000
MAX_MESSAGE = 2000
CHUNK = 500
EXC_ATTRIBUTE = "_swe_miner_exc"


class Text(object):
    """Conversions to text and JSON that depend on nothing that a test may have patched."""

    def __init__(self):
        self.kind = type(u"")
        self.quote = json.encoder.encode_basestring_ascii

    def of(self, value, limit=None):
        """Return a value as unicode text, cut in its middle where it is longer than the limit."""
        if isinstance(value, bytes):
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.decode("latin-1")
        elif isinstance(value, self.kind):
            text = self.kind(value)
        else:
            try:
                text = self.kind(value)
            except UnicodeError:
                return self.of(str(value), limit)
        if limit is not None and len(text) > limit:
            half = limit // 2
            text = text[:half] + u"\n[... %d characters left out ...]\n" % (len(text) - 2 * half) + text[-half:]
        return text

    def json(self, value):
        """Return the JSON of plain values: None, booleans, numbers, texts, lists and dicts."""
        if value is None:
            return "null"
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, int):
            return "%d" % value
        if isinstance(value, float):
            return "%.6f" % value
        if isinstance(value, list):
            return "[" + ",".join([self.json(item) for item in value]) + "]"
        if isinstance(value, dict):
            pairs = [self.quote(self.of(key)) + ":" + self.json(value[key]) for key in sorted(value)]
            return "{" + ",".join(pairs) + "}"
        return self.quote(self.of(value))


class Sink(object):
    """The report file. Functions are bound when it is made, on an object and not in the module: tools that fake the file
    system or the clock look for module globals.
    """

    def __init__(self, path):
        import errno
        import os

        self._open, self._write, self._fstat, self._close = os.open, os.write, os.fstat, os.close
        self._getpid = os.getpid
        self._interrupted = errno.EINTR
        self._flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._path = os.path.abspath(path)
        self._pid = os.getpid()
        self._fd, self._identity = None, None
        self._count = 0
        self._text = Text()
        try:
            import fcntl

            self._fcntl = fcntl.fcntl
            self._dup = getattr(fcntl, "F_DUPFD_CLOEXEC", 1030 if sys.platform.startswith("linux") else fcntl.F_DUPFD)
        except ImportError:
            self._fcntl = None

    def emit(self, event, **fields):
        """Write one line; does nothing in a forked child, and never raises."""
        if self._getpid() != self._pid:
            return
        fields["event"] = event
        fields["n"] = self._count
        self._count += 1
        line = (self._text.json(dict((k, v) for k, v in fields.items() if v is not None)) + "\n").encode("ascii")
        try:
            self._put(line)
        except OSError:
            pass  # the gap in the numbers tells

    def _put(self, line):
        if not self._is_ours():
            self._reopen()
        while line:
            try:
                line = line[self._write(self._fd, line):]
            except OSError as error:
                if error.errno != self._interrupted:
                    raise

    def _is_ours(self):
        """Whether the descriptor still is the report file: a test may have closed it, and its number used again."""
        if self._fd is None:
            return False
        try:
            status = self._fstat(self._fd)
        except OSError:
            return False
        return status.st_nlink > 0 and (status.st_dev, status.st_ino) == self._identity

    def _reopen(self):
        fd = self._open(self._path, self._flags, 0o644)
        status = self._fstat(fd)
        self._identity = (status.st_dev, status.st_ino)
        self._fd = self._moved_up(fd)

    def _moved_up(self, fd):
        """Move the descriptor to a high number, so that tests get the low numbers that they would get without us."""
        if self._fcntl is None:
            return fd
        try:
            high = self._fcntl(fd, self._dup, 200)
        except (OSError, IOError, ValueError):
            return fd
        self._close(fd)
        return high


def exception_names(excinfo, text):
    """Return the names of an exception's class and of its bases, up to and without BaseException and object."""
    names = [text.of(base.__name__) for base in excinfo.type.__mro__]
    return [str(name) for name in names if name not in ("BaseException", "object")] or [str(names[0])]


class ExceptionNames(object):
    """Hangs the names of the exception's classes on a failed report, as plain texts that pytest-xdist can send."""

    def __init__(self):
        self._text = Text()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        try:
            report = outcome.get_result()
            if call.excinfo is not None and report.outcome == "failed":
                setattr(report, EXC_ATTRIBUTE, exception_names(call.excinfo, self._text))
        except Exception:
            pass  # a makereport that raises raises again in pytest; without names the cause is "error"


class Reporter(ExceptionNames):
    """The hooks that write events. A fault of ours becomes an event, never a fault of the run."""

    def __init__(self, config, sink, probes, probe_attr):
        ExceptionNames.__init__(self)
        self._sink = sink
        self._probes, self._probe_attr = probes, probe_attr
        self._ids_written = False
        self._safely(self._session, config)

    def _safely(self, build, *args):
        try:
            build(*args)
        except Exception as error:
            message = "%s: %s" % (type(error).__name__, self._text.of(error, MAX_MESSAGE))
            self._sink.emit("reportererror", where=build.__name__, message=message)

    def _session(self, config):
        root = getattr(config, "rootpath", None) or getattr(config, "rootdir", "")
        self._sink.emit(
            "session",
            schema=SCHEMA,
            pytest=self._text.of(pytest.__version__),
            python="%d.%d.%d" % tuple(sys.version_info[:3]),
            rootdir=self._text.of(root),
        )

    def pytest_collectreport(self, report):
        self._safely(self._collect, report)

    def _collect(self, report):
        passed = report.outcome == "passed"
        self._sink.emit(
            "collect",
            nodeid=self._text.of(report.nodeid),
            outcome=self._text.of(report.outcome),
            message=None if passed else self._message(report),
            longrepr=None if passed else self._longrepr(report),
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        self._safely(self._collected, [item.nodeid for item in session.items])
        self._safely(self._probe_all)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if not self._ids_written:  # pytest-xdist itself insists that all workers collect the same
            self._safely(self._collected, ids)
            self._safely(self._probe_all)

    def _collected(self, ids):
        self._ids_written = True
        texts = [self._text.of(nodeid) for nodeid in ids]
        chunks = [texts[at:at + CHUNK] for at in range(0, len(texts), CHUNK)] or [[]]
        for part, chunk in enumerate(chunks):
            self._sink.emit("collected", ids=chunk, part=part, parts=len(chunks), total=len(texts))

    def _probe_all(self):
        for name in self._probes:
            module, error = None, None
            try:
                __import__(name)
                module = sys.modules[name]
            except BaseException as raised:  # an import may call sys.exit
                error = "%s: %s" % (type(raised).__name__, self._text.of(raised, MAX_MESSAGE))
            value = getattr(module, self._probe_attr, None)
            self._sink.emit(
                "probe",
                module=name,
                file=self._text.of(getattr(module, "__file__", None) or ""),
                value=None if value is None else self._text.of(repr(value), MAX_MESSAGE),
                error=error,
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        self._sink.emit("start", nodeid=self._text.of(nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        self._safely(self._report, report)

    def _report(self, report):
        plain = report.outcome == "passed"
        reason = getattr(report, "wasxfail", None)
        worker = getattr(report, "worker_id", None)
        self._sink.emit(
            "report",
            nodeid=self._text.of(report.nodeid),
            when=self._text.of(report.when or ""),
            outcome=self._text.of(report.outcome),
            duration=float(getattr(report, "duration", 0.0)),
            exc=getattr(report, EXC_ATTRIBUTE, None),
            message=None if plain else self._message(report),
            longrepr=None if plain else self._longrepr(report),
            wasxfail=None if reason is None else self._text.of(reason, MAX_MESSAGE),
            subtest=self._subtest(report),
            worker=None if worker in (None, "master") else self._text.of(worker),
        )

    def _subtest(self, report):
        """The message of a subtest (pytest-subtests, or pytest 9 itself); None for a report of a whole test."""
        context = getattr(report, "context", None)
        if context is None or not hasattr(context, "kwargs"):
            return None
        return self._text.of(getattr(context, "msg", None) or "", MAX_MESSAGE)

    def _message(self, report):
        """The last line of a failure, or the reason of a skip."""
        longrepr = report.longrepr
        if isinstance(longrepr, tuple) and len(longrepr) == 3:
            return self._text.of(longrepr[2], MAX_MESSAGE)
        crash = getattr(longrepr, "reprcrash", None)
        return None if crash is None else self._text.of(crash.message, MAX_MESSAGE)

    def _longrepr(self, report):
        longrepr = report.longrepr
        if longrepr is None or isinstance(longrepr, tuple):
            return None
        try:
            return self._text.of(report.longreprtext, MAX_TEXT)
        except Exception:  # rendering of foreign reprs on Python 2 may fail on their encoding
            return self._text.of(longrepr, MAX_TEXT)

    def pytest_keyboard_interrupt(self, excinfo):
        self._safely(self._interrupt, excinfo)

    def _interrupt(self, excinfo):
        message = self._text.of(excinfo.value, MAX_MESSAGE)
        self._sink.emit("interrupt", exc=exception_names(excinfo, self._text), message=message)

    def pytest_internalerror(self, excrepr):
        self._safely(self._internalerror, excrepr)

    def _internalerror(self, excrepr):
        self._sink.emit("internalerror", message=self._text.of(excrepr, MAX_TEXT))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self._safely(self._finish, session, exitstatus)

    def _finish(self, session, exitstatus):
        stopped = getattr(session, "shouldstop", False) or getattr(session, "shouldfail", False)
        self._sink.emit(
            "finish",
            exitstatus=int(exitstatus),
            stopped=self._text.of(stopped, MAX_MESSAGE) if stopped else None,
        )


def _take_environment():
    """Take our variables out of the environment; return the sink, the modules to probe and the attribute's name."""
    import os

    path = os.environ.pop("SWE_MINER_REPORT", "")
    probes = [name.strip() for name in os.environ.pop("SWE_MINER_PROBE", "").split(",") if name.strip()]
    attribute = os.environ.pop("SWE_MINER_PROBE_ATTR", "")
    return [(Sink(path), probes, attribute)] if path else []


_waiting = _take_environment()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Register the reporter with the first session of this process; in a worker of pytest-xdist, the names only."""
    if hasattr(config, "workerinput") or hasattr(config, "slaveinput"):
        config.pluginmanager.register(ExceptionNames(), "swe_miner_exception_names")
    elif _waiting:
        sink, probes, attribute = _waiting.pop()
        config.pluginmanager.register(Reporter(config, sink, probes, attribute), "swe_miner_report_writer")
