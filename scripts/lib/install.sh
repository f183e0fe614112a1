#!/bin/sh
# Installs kopf from a release: a directory that scripts/release has made, or the URL of one.
#
#   install.sh --from DIR_OR_URL [--to DIR]      default: /usr/local/bin as root, otherwise ~/.local/bin
set -eu

from='' to=''
while [ $# -gt 0 ]; do
  case $1 in
    --from) from=${2:-}; shift 2 || { echo "error: --from needs a directory or a URL" >&2; exit 2; } ;;
    --to) to=${2:-}; shift 2 || { echo "error: --to needs a directory" >&2; exit 2; } ;;
    *) echo "error: unknown option '$1'; usage: install.sh --from DIR_OR_URL [--to DIR]" >&2; exit 2 ;;
  esac
done
[ -n "$from" ] || { echo "error: name the release: install.sh --from DIR_OR_URL" >&2; exit 2; }
if [ -z "$to" ]; then
  if [ "$(id -u)" = 0 ]; then to=/usr/local/bin; else to=$HOME/.local/bin; fi
fi
[ "$(uname -s)" = Linux ] || { echo "error: there are binaries for Linux only" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
take() {
  case $from in
    http://* | https://*) curl --fail --silent --show-error --location --output "$work/$1" "$from/$1" ;;
    *) cp -- "$from/$1" "$work/$1" ;;
  esac || { echo "error: there is no $1 in $from" >&2; exit 1; }
}

take SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(kopf-.*-linux-$(uname -m)\.tar\.gz\)$/\1/p" "$work/SHA256SUMS")
[ -n "$archive" ] || { echo "error: the release has no binary for $(uname -m)" >&2; exit 1; }
take "$archive"
(cd "$work" && grep "  $archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
  { echo "error: $archive does not match its checksum: download it again" >&2; exit 1; }
tar -xzf "$work/$archive" -C "$work"
mkdir -p -- "$to"
install -m 755 "$work/${archive%.tar.gz}/kopf" "$to/kopf"
"$to/kopf" --version
case :$PATH: in *":$to:"*) ;; *) echo "hint: add $to to your PATH" >&2 ;; esac
