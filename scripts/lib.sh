# shellcheck shell=bash
# lib.sh - what the scripts in this folder share. Sourced, never run.
#
# Sets root_dir (the checkout), exports DOCKER_HOST so that every program we start talks to the
# same daemon, and adds the system folders that the PATH of an ordinary user lacks.

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export root_dir

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export DOCKER_HOST=${DOCKER_HOST:-unix:///var/run/docker.sock}

# Where docker-up keeps what it knows about a daemon it started. Not below build/, so that
# `make clean` cannot orphan the daemon; gone after a reboot, just as the daemon is.
# shellcheck disable=SC2034 # used by the scripts that source this file
state_dir=/run/code-runner-dev

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# as_root CMD... - run a command with root's rights.
as_root() {
    if is_root; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        die "needs root, and there is no sudo: $*"
    fi
}

# The path of the daemon's socket, or nothing when DOCKER_HOST is not a unix socket.
docker_socket() {
    case $DOCKER_HOST in
    unix://*) printf '%s\n' "${DOCKER_HOST#unix://}" ;;
    esac
}

# Does a daemon answer? A newer client may shadow the distribution's; if the first one on PATH
# and the daemon do not understand each other, fall back to the one in /usr/bin.
docker_answers() {
    command -v docker >/dev/null || return 1
    timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1 && return 0
    [ -x /usr/bin/docker ] && [ "$(command -v docker)" != /usr/bin/docker ] || return 1
    timeout 10 /usr/bin/docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || return 1
    # shellcheck disable=SC2317 # called by the scripts that source this file
    docker() { /usr/bin/docker "$@"; }
}

# need_docker "$@" - make sure that this script can use the daemon. A user who may not open the
# socket gets there through with-docker, which runs the script again with the socket's group.
need_docker() {
    docker_answers && return 0
    if [ -z "${CODE_RUNNER_WITH_DOCKER:-}" ]; then
        CODE_RUNNER_WITH_DOCKER=1 exec "$root_dir/scripts/with-docker" "$0" "$@"
    fi
    die "no Docker daemon answers at $DOCKER_HOST (start one with: make docker)"
}

# hash_of PATH... - one hash over names, modes and contents of the files below the given paths.
hash_of() {
    find "$@" -type f -printf '%m %p\0' | LC_ALL=C sort -z |
        while IFS=' ' read -r -d '' mode path; do
            printf '%s %s\n' "$mode" "${path#"$root_dir"/}"
            cat -- "$path"
        done | sha256sum | cut -c1-32
}
