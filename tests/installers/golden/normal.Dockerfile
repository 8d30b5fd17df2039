# How this environment was made, for people. The released image is assembled from the same steps, run in a sandbox
# and stored as layers with fixed times; building this file gives an equal environment, not the same digest.
#
# project:   demo 1.2
# python:    3.11
# back end:  setuptools.build_meta
# installed: as a copy, again after every change
# lock:      sha256 b8dd0f57b75d740ef3aaa804834e6bb90542a06d6d540d01408c3737a1db628f, build requirements sha256 111552118da398d9a17d36fa06ee46f60cbe7271b91dfae890f22d2575985d94
#
# requirement <- where the project declares it
#   attrs>=22 <- pyproject.toml: project.dependencies
#   pytest <- always: what runs the tests
#
# notes
#   tox.ini: testenv: 'cov: coverage' is for another environment
#
# Needed beside this file: lock.txt, build.txt, reinstall, offline.py (what that calls) and the folder repository (the tree at the base commit).

ARG BASE=sha256:1111111111111111111111111111111111111111111111111111111111111111
FROM ${BASE}

# What is locked, with hashes, and nothing else. The project itself is never taken from the index.
COPY lock.txt /opt/lock/lock.txt
RUN uv venv /opt/env --python 3.11 \
 && uv pip install --python /opt/env/bin/python --no-deps --require-hashes --requirement /opt/lock/lock.txt
ENV PATH="/opt/env/bin:${PATH}"

COPY repository /testbed
WORKDIR /testbed
RUN git config --system --add safe.directory /testbed

# Installed as a copy, again after every change. The build requirements stay in /opt/build, so that the last line can run again offline.
COPY build.txt /opt/lock/build.txt
RUN uv venv /opt/build --python 3.11 \
 && uv pip install --python /opt/build/bin/python --no-deps --require-hashes --requirement /opt/lock/build.txt
COPY reinstall /opt/build/reinstall
COPY offline.py /opt/build/offline.py
# After every change of the source tree: /opt/build/reinstall
RUN /opt/build/reinstall

# Test processes are not worth waiting for.
STOPSIGNAL SIGKILL
