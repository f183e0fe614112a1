#!/bin/sh
# What a CI system runs for each change of the operator, without a cluster: `sh ci.sh`. It needs only the kopf binary.
set -eu
cd "$(dirname "$0")"

kopf check
kopf test
# Fails for scripts whose permissions cannot be told: add them with --also, or rewrite the call.
kopf manifests --image example.com/kopf:ci >/dev/null
