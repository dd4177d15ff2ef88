#!/usr/bin/env bash
# Everything that hardware must say, within minutes and without a network:
#
#     ./run.sh [--minutes 8] [--resume] [--only STEP,...] OUT
#
# Writes nothing outside of this folder and OUT. PYTHON names the Python to use.
set -euo pipefail
"${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "the kit needs Python 3.11 or newer: PYTHON=python3.12 ./run.sh OUT" >&2
  exit 1
}
exec "${PYTHON:-python3}" "$(dirname "$0")/start.py" "$@"
