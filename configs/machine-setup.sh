#!/usr/bin/env bash
# Brings a machine to where `make mine` and `make test` work: git, mmdebstrap (base image, Debian packages) and a container
# engine that answers. Idempotent: what is there is left alone, above all an engine. Never starts a second dockerd.
# It installs only as root on Debian or Ubuntu; elsewhere it says what to do. PYTHON is the project's interpreter.
# Exit status: 0 ready, 7 no engine, 11 a tool is missing, other: what failed said so.
set -euo pipefail

python=${PYTHON:-.venv/bin/python}
log=/var/log/dockerd.log
lock=/run/lock/swe-miner-dockerd
patience_s=60

say() { echo "machine-setup: $*" >&2; }

# 0: an engine answers where the settings say; 7: none does; other: the settings are wrong.
engine_answers() {
    "$python" - <<'PYTHON'
import sys
from miner.core.errors import DockerUnavailable, SweMinerError
from miner.core.settings import load_settings
from miner.sandbox.engine import connect
try:
    connect(load_settings().docker).close()
except DockerUnavailable:
    sys.exit(7)
except SweMinerError as error:
    sys.exit(f"machine-setup: {error}")
PYTHON
}

answers() {
    local status=0
    engine_answers || status=$?
    [ "$status" -eq 0 ] && return 0
    [ "$status" -eq 7 ] && return 1
    exit "$status"
}

may_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && grep -qiE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

install_packages() {
    say "installing: $*"
    export DEBIAN_FRONTEND=noninteractive
    local options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0) output
    output=$(apt-get "${options[@]}" update 2>&1 &&
        apt-get "${options[@]}" install -y --no-install-recommends "$@" 2>&1) || { echo "$output" >&2; return 1; }
}

systemd_runs() { [ -d /run/systemd/system ]; }

running() { # name: pid of a process of this name
    local comm
    for comm in /proc/[0-9]*/comm; do
        if [ "$(cat "$comm" 2>/dev/null)" = "$1" ]; then
            basename "$(dirname "$comm")"
            return 0
        fi
    done
    return 1
}

wait_for_answer() { # seconds
    local end=$((SECONDS + $1))
    until answers; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.5
    done
}

# A pid file outlives a machine that was switched off, and its number may be another process by now.
remove_stale_pid_file() { # file name
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] || rm -f "$1"
}

start_dockerd() {
    if systemd_runs; then
        systemctl start docker
    elif ! running dockerd >/dev/null; then
        remove_stale_pid_file /var/run/docker.pid dockerd
        remove_stale_pid_file /var/run/docker/containerd/containerd.pid containerd
        say "starting dockerd, log in $log"
        setsid dockerd >>"$log" 2>&1 </dev/null 9>&- &
        local pid=$!
        sleep 1
        kill -0 "$pid" 2>/dev/null || running dockerd >/dev/null || { report_dead; return 1; }
    fi
    wait_for_answer "$patience_s" || { report_dead; return 1; }
}

report_dead() {
    say "dockerd does not answer. The end of $log:"
    tail -n 20 "$log" >&2 2>/dev/null || true
    say "if this machine is itself a container, it has to be privileged, or lend us an engine: export DOCKER_HOST=..."
}

advise_engine() {
    cat >&2 <<'TEXT'
machine-setup: no container engine answers, and one is installed here only as root on Debian or Ubuntu. Do one of:
  - run `make docker` as root on Debian or Ubuntu;
  - install Docker Engine (or Podman with its API socket), start it, and let your user reach its socket;
  - use an engine elsewhere: export DOCKER_HOST=tcp://host:port.
Then check with `swe-miner doctor`.
TEXT
}

ensure_tools() {
    local missing=()
    command -v git >/dev/null || missing+=(git)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
    [ ${#missing[@]} -gt 0 ] || return 0
    if may_install; then
        install_packages "${missing[@]}"
    elif command -v git >/dev/null; then
        say "not here: ${missing[*]}. The base image and Debian packages need them; without, set docker.base_image."
    else
        say "please install: ${missing[*]}"
        return 11
    fi
}

ensure_engine() {
    answers && return 0
    local elsewhere=${SWE_MINER_DOCKER__HOST:-${DOCKER_HOST:-}}
    if [ -n "$elsewhere" ]; then
        say "the engine at $elsewhere does not answer; start it, or unset DOCKER_HOST and SWE_MINER_DOCKER__HOST"
        return 7
    fi
    may_install || { advise_engine; return 7; }
    if ! command -v dockerd >/dev/null; then
        install_packages docker.io iptables
        wait_for_answer 5 && return 0 # the package starts it where it can
    fi
    start_dockerd || return 7
}

[ -x "$python" ] || { say "$python is missing: run \`make setup\` first"; exit 11; }
if may_install; then # one at a time: another make may be doing the same right now
    mkdir -p "$(dirname "$lock")"
    exec 9>"$lock"
    flock 9
fi
ensure_tools
ensure_engine
