#!/usr/bin/env bash
# Tests the operator with a local API server: no cluster is needed, only kopf and kubectl.
#
#   examples/09-testing/test.sh [handlers.lua | handlers.rhai]
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

desk=$(mktemp -d)
"${KOPF:-kopf}" dev --verbose --write-kubeconfig "$desk/config" "${1:-handlers.lua}" --apply ../obj.yaml >"$desk/log" 2>&1 &
operator=$!
trap 'kill -KILL "$operator" 2>/dev/null || true; rm -rf "$desk"' EXIT

# Waits until the log contains a string.
says() {
  for _ in $(seq 300); do
    if grep -qF -- "$1" "$desk/log"; then return; fi
    if ! kill -0 "$operator" 2>/dev/null; then break; fi
    sleep 0.1
  done
  echo "FAILED: the log does not contain: $1" >&2
  cat "$desk/log" >&2
  exit 1
}

says "[default/kopf-example-1] Creation is in progress:"
says "[default/kopf-example-1] Something was logged here."
says "[default/kopf-example-1] Creation is processed: 1 succeeded; 0 failed."
kubectl --kubeconfig "$desk/config" delete kopfexample kopf-example-1 >/dev/null
says "[default/kopf-example-1] Deleted, really deleted"

kill -TERM "$operator"
wait "$operator"
echo "passed"
