# shellcheck shell=bash
# What the scripts share: talk, and getting the programs that the project needs. Sourced, not run.
# Talk goes to stderr; stdout belongs to the script that sources this.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root: directly, or by sudo, which may ask only where there is somebody to answer.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif have sudo && [ -t 0 ]; then
    sudo "$@"
  elif have sudo; then
    sudo -n "$@"
  else
    say "neither root nor sudo: cannot run: $*"
    return 1
  fi
}

# Runs a command whose talk matters only when it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [ "$status" -eq 0 ] || cat "$log" >&2
  rm -f "$log"
  return "$status"
}

# Debian starts a server as soon as its package is there. This package is wanted for its program alone, so the
# packaging is told not to, and what it did for the next boot is taken back.
apt_install() (
  policy=/usr/sbin/policy-rc.d
  quietly as_root apt-get update -qq || say "the package lists could not be renewed; trying with those that are here"
  if [ ! -e "$policy" ]; then
    trap 'as_root rm -f "$policy"' EXIT
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy" || true
  fi
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
)

# install WHAT FOR_APT FOR_DNF FOR_APK FOR_BREW: installs a package by whatever package manager is here.
install() {
  say "installing $1"
  # Where a name is two words, it is two packages.
  # shellcheck disable=SC2086
  if have apt-get; then
    apt_install $2
  elif have dnf; then
    quietly as_root dnf install -y -q $3
  elif have apk; then
    quietly as_root apk add --quiet $4
  elif have brew; then
    quietly brew install --quiet $5
  else
    say "none of apt-get, dnf, apk, brew is here"
    return 1
  fi
}

# A redis-server on PATH. The servers that the project uses are its own, on free ports, never the system's.
need_redis() {
  have redis-server && return
  if ! install redis-server redis-server redis redis redis && have dnf; then
    # Where Redis made room for its successor, that comes with the old names.
    install "valkey under the name of redis" '' valkey-compat-redis '' '' || true
  fi
  hash -r
  have redis-server || die "redis-server is not on PATH and could not be installed; install Redis and try again"
  if have systemctl && [ -d /run/systemd/system ]; then
    as_root systemctl disable --now redis-server >/dev/null 2>&1 || true
  fi
}

# A C compiler and linker, which rustc and one crate call.
need_compiler() {
  have cc && return
  install "a C compiler" "gcc libc6-dev" gcc "gcc musl-dev" gcc || true
  hash -r
  have cc || die "there is no C compiler (cc) and none could be installed"
}

# cargo, and the components beside it that are named: rustfmt, clippy.
need_cargo() {
  local component
  if ! have cargo && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
  fi
  have cargo || die "cargo is not on PATH; install Rust by rustup (Cargo.toml names the oldest version that will do)"
  for component in "$@"; do
    # rustfmt is called as cargo fmt.
    cargo "${component#rust}" --version >/dev/null 2>&1 && continue
    have rustup && quietly rustup component add "$component" && continue
    die "cargo has no $component and rustup cannot add it; install that component of Rust"
  done
}
