# Sourced by scripts/verify-NAME: changes to the top of the repository; `passed TEXT` prints the result in the form of docs/performance.md.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[1]}")/.."

passed() {
  local commit
  commit=$(git rev-parse --short HEAD)
  git diff --quiet HEAD -- || commit+=", with changes"
  printf '%s: passed on %s (%s, %s s): %s\n' "$(basename "$0")" "$(date -u +%F)" "$commit" "$SECONDS" "$*"
}
