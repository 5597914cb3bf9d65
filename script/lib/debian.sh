# shellcheck shell=bash
# Programs out of Debian's packages, unpacked with their own C library beside the system, which is left alone. Sourced
# after setup.sh, not run.

# The mirror that this machine gets its Debian packages from.
debian_mirror() {
  local uri
  uri=$(sed -nE 's/^URIs: *([^ ]+debian)\/? *$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  [ -n "$uri" ] ||
    uri=$(sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+debian)\/? .*/\2/p' \
      /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | head -n 1)
  [ -n "$uri" ] && printf '%s\n' "$uri"
}

# debian_lists WORK SUITE: gets the package lists of a suite into WORK; WORK/apt is then apt-get over them. Lists and
# files of its own: the system's are not touched, and root is not needed.
debian_lists() {
  local work=$1 suite=$2 mirror keyring='' file
  have apt-get && have dpkg-deb || {
    say "this is no Debian"
    return 1
  }
  mirror=$(debian_mirror) || {
    say "no Debian mirror is configured here"
    return 1
  }
  for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    [ ! -e "$file" ] || keyring=$file
  done
  [ -n "$keyring" ] || {
    say "Debian's archive keyring is not here"
    return 1
  }
  have patchelf || install patchelf patchelf '' '' '' || return 1
  mkdir -p "$work"/{lists/partial,archives/partial}
  printf 'deb [signed-by=%s check-valid-until=no] %s %s main\n' "$keyring" "$mirror" "$suite" >"$work/sources.list"
  {
    printf '#!/bin/sh\nexec apt-get -qq'
    printf " -o '%s'" "Dir::Etc::SourceList=$work/sources.list" Dir::Etc::SourceParts=/dev/null \
      "Dir::State::Lists=$work/lists" "Dir::Cache=$work" "APT::Sandbox::User=$(id -un)"
    printf ' "$@"\n'
  } >"$work/apt"
  chmod 755 "$work/apt"
  quietly "$work/apt" update
}

# debian_unpack WORK PACKAGE...: unpacks packages into WORK/tree, and their shared libraries into WORK/prefix/libc.
debian_unpack() {
  local work=$1 file
  shift
  mkdir -p "$work"/{debs,tree,prefix/bin,prefix/libc}
  (cd "$work/debs" && quietly "$work/apt" download "$@") || return 1
  for file in "$work"/debs/*.deb; do dpkg-deb -x "$file" "$work/tree" || return 1; done
  find "$work/tree" ! -type d \( -name '*.so.*' -o -name 'ld-linux*' \) -exec cp -L {} "$work/prefix/libc/" \;
}

# debian_tie WORK HOME PROGRAM: lets a program of WORK/prefix/bin use those libraries, once they stand in HOME.
debian_tie() {
  local loader
  loader=$(basename "$1"/prefix/libc/ld-linux*)
  patchelf --set-interpreter "$2/libc/$loader" --force-rpath --set-rpath "$2/libc" "$1/prefix/bin/$3"
}
