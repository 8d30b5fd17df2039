# How this environment was made, for people. The released image is assembled from the same steps, run in a sandbox
# and stored as layers with fixed times; building this file gives an equal environment, not the same digest.
#
# project:   demo 1.2
# python:    3.11
# back end:  setuptools.build_meta
# installed: editable
# lock:      sha256 b8dd0f57b75d740ef3aaa804834e6bb90542a06d6d540d01408c3737a1db628f, build requirements sha256 111552118da398d9a17d36fa06ee46f60cbe7271b91dfae890f22d2575985d94
#
# requirement <- where the project declares it
#   attrs>=22 <- pyproject.toml: project.dependencies
#   pytest <- always: what runs the tests
#
# notes
#   tox.ini: testenv: 'cov: coverage' is for another environment
#
# Needed beside this file: lock.txt, build.txt and the folder repository (the tree at the base commit).

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

# Installed with a link back to the tree: an edit there is seen at once.
COPY build.txt /opt/lock/build.txt
RUN LABEL='it'"'"'s "$HOME"' SETUPTOOLS_SCM_PRETEND_VERSION=1.2 uv pip install --python /opt/env/bin/python --no-deps --no-sources --build-constraints /opt/lock/build.txt --editable '/testbed/python lib'

# Test processes are not worth waiting for.
STOPSIGNAL SIGKILL
