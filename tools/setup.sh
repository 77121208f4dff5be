# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# To be sourced: functions that set up a virtual environment with the project on a machine with python3 and cc.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
# Python compiles imported modules: pip would also compile modules that are never imported, and those of the build.
export PIP_NO_COMPILE=1

say() { printf '%s\n' "-- $*" >&2; }
die() {
  printf '%s\n' "error: $*" >&2
  exit 1
}

# quietly COMMAND...: prints only the warnings of compilers, and the end of the output if the command fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" </dev/null >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "failed, with its whole output in $log: $*"
  fi
  grep -A 5 ': warning: ' "$log" >&2 || :
  rm -f "$log"
}

# Sets `python` to the interpreter in $PYTHON, else to the first supported one on PATH.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
      python=$(command -v "$candidate")
      return
    fi
  done
  die "no Python from 3.10 to 3.13 among: ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}" \
    "(the variable PYTHON names another)"
}

# Whether pip can install into a virtual environment without pip: since pip 22.3.
has_pip_for_others() { "$python" -m pip --python "$python" --version >/dev/null 2>&1; }
can_make_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
has_headers() {
  "$python" -c 'import os, sys, sysconfig as s; sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))'
}
has_compiler() {
  local compiler
  for compiler in ${CXX:-c++ g++ clang++}; do
    echo '#include <optional>' | "$compiler" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null && return
  done
  return 1
}

# Debian's python3 and cc do not include these packages; root installs them, other users get an error that names them.
ensure_system() {
  local missing=()
  can_make_venv || missing+=(python3-venv)
  has_headers || missing+=(python3-dev)
  has_compiler || missing+=(g++)
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    install_packages "${missing[@]}"
    can_make_venv && has_headers && has_compiler && return
  fi
  die "$python cannot build the project here: run \`apt-get install ${missing[*]}\` as root, or give another" \
    "interpreter in the variable PYTHON (needed: its venv module, its C headers, a C++17 compiler)"
}

install_packages() {
  say "installing $* with apt-get"
  quietly apt-get update
  DEBIAN_FRONTEND=noninteractive quietly apt-get install -y --no-install-recommends "$@"
}

# ensure_venv DIR: makes a virtual environment of $python, again if it is of another interpreter or was moved.
ensure_venv() {
  local venv=$1 made_for arguments=()
  made_for="$venv $("$python" -VV | tr '\n' ' ') $("$python" -c 'import sys; print(sys.base_prefix)')"
  [ "$(cat "$venv/.made-for" 2>/dev/null)" = "$made_for" ] && return
  say "making $venv"
  has_pip_for_others && arguments=(--without-pip)
  quietly "$python" -m venv --clear "${arguments[@]}" "$venv"
  printf '%s\n' "$made_for" >"$venv/.made-for"
}

# install_into DIR PIP_ARGUMENT...: installs by pip into a virtual environment that ensure_venv made.
install_into() {
  local venv=$1
  shift
  if has_pip_for_others; then
    quietly "$python" -m pip --python "$venv/bin/python" install "$@"
  else
    quietly "$venv/bin/python" -m pip install "$@"
  fi
}

# Prints a digest of the sources of an installed project.
sources_digest() {
  (
    cd "$root" || exit
    find pyproject.toml CMakeLists.txt README.md LICENSE lib dialect_defs python -type f \
      ! -path '*/__pycache__/*' ! -path 'python/mlir_shard/dialect_defs/*' ! -name '*.so' ! -name '_*_gen.py' \
      -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
  )
}

# ensure_model_explorer DIR: installs Model Explorer in the virtual environment DIR, without the adapters of 128 MB that
# are not in the extra `model-explorer`.
ensure_model_explorer() {
  "$1/bin/python" -c 'import model_explorer' 2>/dev/null || install_into "$1" --no-deps 'ai-edge-model-explorer>=0.1.34,<0.2'
}

# ensure_project DIR PIP_ARGUMENT...: installs the project in the virtual environment DIR, again if it has changed.
ensure_project() {
  local venv=$1 wanted
  shift
  wanted="$* $(sources_digest)"
  [ "$(cat "$venv/.installed" 2>/dev/null)" = "$wanted" ] && return
  say "installing mlir-shard with its requirements in $venv"
  (cd "$root" && install_into "$venv" "$@") || exit 1
  printf '%s\n' "$wanted" >"$venv/.installed"
}
