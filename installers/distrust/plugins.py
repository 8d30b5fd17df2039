"""Plug-ins of pytest on the index: those that decide which tests run or what counts, and those that do not.

Source of the names and of what they do: pytest, "Pytest Plugin List"
(https://docs.pytest.org/en/stable/reference/plugin_list.html).
"""

from __future__ import annotations

from collections.abc import Mapping

from miner.project.text import words

_CHANGED = "runs only tests that a change is said to touch"
_SELECTS = "runs only tests that it selects"
_SKIPS = "skips tests, or makes failures count for nothing"
_RERUNS = "runs a test again until it passes"
_ORDERS = "changes the order of the tests"
_PARTS = "runs only a part of the tests"
_STOPS = "ends a run, or skips what follows, after a failure"
_SPREADS = "runs tests at the same time in one process"
_STYLE = "adds checks of style to the tests"
_LOADS = "loads other plug-ins, options or settings from elsewhere"

STEERING: Mapping[str, str] = {
    # distribution: what it does to tests
    **dict.fromkeys(
        words(
            """
            pytest-affected pytest-avoidance pytest-cagoule pytest-changed pytest-cov-affected
            pytest-coverage-impact pytest-delta pytest-deltatest pytest-depper pytest-diff-selector pytest-difftest
            pytest-ekstazi pytest-filemarker pytest-git-diff pytest-git-selector pytest-impact pytest-impacted
            pytest-impacted-rs pytest-incremental pytest-knows pytest-picked pytest-rerun pytest-rts
            pytest-run-changed pytest-runfailed pytest-skipper pytest-skippy pytest-smartcollect pytest-snob
            pytest-testmon pytest-testmon-dev pytest-testmon-oc pytest-testmon-skip-libraries pytest-tia pytest-tldr
            """
        ),
        _CHANGED,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-allure-collection pytest-attrib pytest-autofocus pytest-browser pytest-codeowners
            pytest-coveragemarkers pytest-deselect-if pytest-dot-only-pkcopley pytest-dryrun pytest-explicit
            pytest-extra-markers pytest-filter-case pytest-filter-subpackage pytest-filterfixtures pytest-fzf
            pytest-gitignore pytest-integration pytest-integration-mark pytest-interactive pytest-job-selection
            pytest-level pytest-mark-filter pytest-mark-manage pytest-markfiltration pytest-menu pytest-only
            pytest-only-markers pytest-param pytest-regex pytest-select pytest-slow pytest-subset
            pytest-uncollect-if pytest-unittest-filter pytest-unmarked pytest-unused-fixtures
            """
        ),
        _SELECTS,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-bug pytest-covid pytest-custom-outputs pytest-disable pytest-error-for-skips pytest-errxfail
            pytest-expect pytest-failed-to-verify pytest-finer-verdicts pytest-forcefail pytest-ignore-flaky
            pytest-ignore-test-results pytest-imply pytest-jira pytest-jira-xfail pytest-lf-skip
            pytest-marker-bugzilla pytest-match-skip pytest-optional-dependencies pytest-percent
            pytest-platform-markers pytest-quarantine pytest-requires pytest-runtime-xfail pytest-skip
            pytest-skip-markers pytest-skip-slow pytest-skipuntil pytest-stochastics pytest-unstable pytest-vw
            pytest-xfaillist
            """
        ),
        _SKIPS,
    ),
    **dict.fromkeys(
        words(
            """
            flaky pytest-aviator pytest-batch-regression pytest-continuous pytest-dynamicrerun pytest-familywise
            pytest-flake-detection pytest-flakefighters pytest-flakefinder pytest-flakehunter pytest-iteration
            pytest-probability pytest-repeat pytest-repeated pytest-repeater pytest-replay pytest-rerun-all
            pytest-rerunclassfailures pytest-rerunfailures pytest-rerunfailures-all-logs pytest-retry
            pytest-retry-class pytest-smart-rerun pytest-tzshift pytest-xflaky
            """
        ),
        _RERUNS,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-conductor pytest-dag pytest-dependency pytest-depends pytest-depends-on pytest-django-ordering
            pytest-find-dependencies pytest-fixture-order pytest-kairos pytest-keep-together pytest-monkey
            pytest-node-dependency pytest-order pytest-order-modify pytest-ordered pytest-ordering pytest-pitch
            pytest-priority pytest-random pytest-random-num pytest-random-order pytest-randomly pytest-ranking
            pytest-regex-dependency pytest-relative-order pytest-reorder pytest-reverse pytest-sequence-markers
            pytest-slow-first pytest-slow-last pytest-sorter pytest-sourceorder
            """
        ),
        _ORDERS,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-azure-devops pytest-balance pytest-cdist pytest-circleci-parallelized
            pytest-circleci-parallelized-rjp pytest-draw pytest-gitlabci-parallelized pytest-group-by-class
            pytest-paraflow pytest-parallelize-tests pytest-portion pytest-sample-argvalues pytest-shard
            pytest-shard-cloudc pytest-shard-fork pytest-split pytest-split-ct pytest-split-ext pytest-split-ng
            pytest-split-tests pytest-split-tests-tresorit pytest-split-v2 pytest-test-grouping pytest-test-groups
            """
        ),
        _PARTS,
    ),
    **dict.fromkeys(words("pytest-atomic pytest-blocker pytest-stepwise pytest-steps pytest-leak-finder"), _STOPS),
    **dict.fromkeys(
        words(
            """
            pytest-concurrency pytest-freethreaded pytest-isolated pytest-mp pytest-parallel
            pytest-parallel-39 pytest-parallex pytest-run-parallel pytest-swarm pytest-threadpool
            """
        ),
        _SPREADS,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-black pytest-checkdocs pytest-codestyle pytest-flake8 pytest-flakes pytest-isort pytest-mypy
            pytest-pep8 pytest-perf pytest-pycodestyle pytest-pydocstyle pytest-pylint pytest-ruff
            """
        ),
        _STYLE,
    ),
    **dict.fromkeys(words("pytest-enabler"), _LOADS),
}

_FIXTURES = "gives fixtures"
_ASYNC = "runs asynchronous tests"
_FRAMEWORK = "starts a framework or a service for tests"
_COMPARES = "compares results with recorded ones"
_OUTPUT = "reports, and changes no outcome"
_SETTINGS = "reads settings that the project itself writes for it"
_LIMITS = "measures or bounds what tests take"
_MARKS = "adds kinds of tests or marks that the project writes itself"

WELL_KNOWN: Mapping[str, str] = {
    # distribution: why its plug-in may be there although the project does not ask for it
    **dict.fromkeys(
        words(
            """
            betamax dirty-equals faker hypothesis inline-snapshot jaxtyping mimesis pyfakefs pytest-arraydiff
            pytest-astropy pytest-astropy-header pytest-aws pytest-base-url pytest-capturelog pytest-catchlog
            pytest-check pytest-click pytest-console-scripts pytest-cookies pytest-cython pytest-data pytest-datadir
            pytest-datafiles pytest-dictsdiff pytest-doctestplus pytest-examples pytest-factoryboy pytest-faker
            pytest-fixture-config pytest-flask-sqlalchemy pytest-freezegun pytest-freezer pytest-git
            pytest-helpers-namespace pytest-httpretty pytest-httpx pytest-insta pytest-lazy-fixture
            pytest-lazy-fixtures pytest-logging pytest-loguru pytest-memray pytest-metadata pytest-mocha pytest-mock
            pytest-mock-resources pytest-mpl pytest-openfiles pytest-param-files pytest-recording pytest-remotedata
            pytest-responses pytest-rng pytest-run-subprocess pytest-server-fixtures pytest-shell pytest-shutil
            pytest-socket pytest-sphinx pytest-structlog pytest-subprocess pytest-testslide pytest-timestamper
            pytest-toolbox pytest-unordered pytest-variables pytest-vcr pytest-virtualenv pytest-xvfb requests-mock
            respx sybil syrupy time-machine typeguard
            """
        ),
        _FIXTURES,
    ),
    **dict.fromkeys(
        words(
            """
            anyio celery pytest-aio pytest-aiohttp pytest-asyncio pytest-asyncio-cooperative pytest-celery
            pytest-curio pytest-eventlet pytest-gevent pytest-grpc pytest-loop pytest-qt pytest-sanic pytest-tornado
            pytest-tornado5 pytest-tornasync pytest-trio pytest-twisted
            """
        ),
        _ASYNC,
    ),
    **dict.fromkeys(
        words(
            """
            dash jupyter-server jupyterlab-server nbval pytest-alembic pytest-bdd pytest-django
            pytest-django-queries pytest-docker pytest-docker-compose pytest-docker-tools pytest-elasticsearch
            pytest-embedded pytest-flask pytest-homeassistant-custom-component pytest-httpbin pytest-httpserver
            pytest-invenio pytest-ipynb pytest-jinja pytest-jupyter pytest-kafka pytest-kind pytest-ldap
            pytest-localftpserver pytest-localserver pytest-localstack pytest-mongo pytest-mongodb pytest-moto
            pytest-mpi pytest-mysql pytest-notebook pytest-odoo pytest-playwright pytest-plone pytest-postgresql
            pytest-pyodide pytest-pyramid pytest-rabbitmq pytest-redis pytest-redislite pytest-salt-factories
            pytest-selenium pytest-services pytest-sftpserver pytest-splinter pytest-sqlalchemy pytest-tipsi-django
            pytest-tipsi-testing
            """
        ),
        _FRAMEWORK,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-approvaltests pytest-datarecorder pytest-ditto pytest-golden pytest-image-diff
            pytest-image-snapshot pytest-regressions pytest-regtest pytest-snapshot snapshottest xdoctest
            """
        ),
        _COMPARES,
    ),
    **dict.fromkeys(
        words(
            """
            allure-pytest pytest-assume pytest-ast-back-to-python pytest-azurepipelines pytest-clarity pytest-cov
            pytest-cover pytest-coverage pytest-csv pytest-custom-exit-code pytest-diff pytest-emoji
            pytest-github-actions-annotate-failures pytest-harvest pytest-html pytest-icdiff pytest-instafail
            pytest-json pytest-json-report pytest-md pytest-md-report pytest-nunit pytest-pretty pytest-print
            pytest-progress pytest-report pytest-reportlog pytest-rich pytest-spec pytest-sugar pytest-tap
            pytest-testdox pytest-travis-fold teamcity-messages
            """
        ),
        _OUTPUT,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-benchmark pytest-codspeed pytest-durations pytest-fail-slow pytest-faulthandler pytest-leaks
            pytest-line-profiler pytest-monitor pytest-profiling pytest-reraise pytest-resource-usage pytest-timeout
            pytest-warnings pytest-xdist
            """
        ),
        _LIMITS,
    ),
    **dict.fromkeys(
        words(
            """
            pytest-beartype pytest-cases pytest-deadfixtures pytest-describe pytest-extra-durations pytest-fixtures
            pytest-harmony pytest-ipywidgets pytest-mypy-plugins pytest-mypy-testing pytest-parametrization
            pytest-parametrized pytest-plugins pytest-pspec pytest-pudb pytest-pycharm pytest-pyvista pytest-raises
            pytest-raisesregexp pytest-raisin pytest-relaxed pytest-runner pytest-subtesthack pytest-subtests
            pytest-watch pytest-yaml schemathesis tavern
            """
        ),
        _MARKS,
    ),
    "pytest-forked": "comes with pytest-xdist before 3.0, and does nothing unless an option asks for it",
    **dict.fromkeys(words("pytest-dotenv pytest-env pytest-pythonpath pytest-srcpaths pytest-xprocess"), _SETTINGS),
    **dict.fromkeys(
        words("backports-unittest-mock devtools hydra-core jaraco-test langsmith logfire"),
        "comes with a library, and changes no outcome",
    ),
}

REPORTS = frozenset(name for name, kind in WELL_KNOWN.items() if kind in (_OUTPUT, _LIMITS))
"""Plug-ins that no test needs."""
