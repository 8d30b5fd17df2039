# How this environment was made, for people. The released image is assembled from the same steps, run in a sandbox
# and stored as layers with fixed times; building this file gives an equal environment, not the same digest.
#
# project:    (version unknown)
# python:    3.11
# back end:  none
# installed: not at all, imported from the tree
# lock:      sha256 b8dd0f57b75d740ef3aaa804834e6bb90542a06d6d540d01408c3737a1db628f
#
# requirement <- where the project declares it
#
# Needed beside this file: lock.txt and the folder repository (the tree at the base commit).

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

# Not installed: there is nothing to build, and the tests import the code from the tree.

# Test processes are not worth waiting for.
STOPSIGNAL SIGKILL
