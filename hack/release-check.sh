#!/usr/bin/env bash
# What a release needs, before its tag: everything builds and vets for every
# target, nothing that the command reaches looks up methods by name, and the
# stripped binary is small enough.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
limit=$((75 * 1000 * 1000))
large=()
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for target in linux/amd64 linux/arm64 darwin/arm64 darwin/amd64 windows/amd64; do
	export CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/}
	echo "==> $target"
	"$go" build ./...
	# Packages that are all of Linux are left out where it can't run.
	"$go" vet ./...
	"$go" build -trimpath -tags grpcnotrace -ldflags '-s -w' -o "$out/drydock" ./cmd/drydock
	size=$(stat -c %s "$out/drydock")
	echo "$((size / 1000000)) MB"
	[ "$size" -le "$limit" ] || large+=("$target: the binary has $size bytes, and may have $limit")
done

# One function that looks up a method by a name keeps all exported methods of all types that are
# reached, a fifth of the binary. The linker says which functions those are.
export CGO_ENABLED=0 GOOS=linux GOARCH=amd64
"$go" build -tags grpcnotrace -ldflags '-dumpdep' -o "$out/drydock" ./cmd/drydock 2>"$out/reached"
if grep -o '^[^ ]* <ReflectMethod>' "$out/reached" | sort -u; then
	echo "these functions look up methods by name and keep all others" >&2
	exit 1
fi
echo "nothing looks up methods by name"

if [ "${#large[@]}" -gt 0 ]; then
	printf '%s\n' "${large[@]}" >&2
	exit 1
fi
