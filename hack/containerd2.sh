#!/bin/sh
# hack/containerd.sh with containerd 2.x, which is built with the go command from
# its module (some minutes, once) and kept in a cache folder:
#
#   hack/containerd2.sh up DIR | down DIR | run DIR -- CMD
#   hack/containerd2.sh build           only build it, and print the folder
#
# RIG_CONTAINERD_VERSION is the version to build (default: the latest).
# RIG_CACHE is the cache folder.
set -u

here=$(cd "$(dirname "$0")" && pwd)
module=github.com/containerd/containerd/v2
cache=${RIG_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/drydock}

skip() {
	echo "containerd2: skipped: $*" >&2
	exit 77
}

# build leaves the folder with the executables in $bin.
build() {
	version=${RIG_CONTAINERD_VERSION:-}
	if [ -z "$version" ]; then
		version=$(cd / && GOFLAGS=-mod=mod go list -m -f '{{.Version}}' "$module@latest" 2>/dev/null) ||
			version=$(ls "$cache" 2>/dev/null | sed -n 's/^containerd-//p' | sort -V | tail -n 1)
		[ -n "$version" ] || skip "the module $module can't be reached, and none was built before"
	fi
	bin=$cache/containerd-$version
	[ -x "$bin/containerd" ] && [ -x "$bin/containerd-shim-runc-v2" ] && return
	command -v go >/dev/null || skip "there is no go command to build $module with"
	tmp=$(mktemp -d) || exit 1
	echo "containerd2: building $module@$version into $bin" >&2
	(
		cd "$tmp" && go mod init rig &&
			go get "$module/cmd/containerd@$version" "$module/cmd/containerd-shim-runc-v2@$version" &&
			CGO_ENABLED=0 go build -trimpath -tags "no_btrfs no_zfs no_devmapper no_cri_checkpoint" \
				-ldflags "-s -w -X $module/version.Version=$version" -o "$tmp/bin/" \
				"$module/cmd/containerd" "$module/cmd/containerd-shim-runc-v2"
	) >"$tmp/log" 2>&1
	if [ $? != 0 ]; then
		text=$(tail -n 1 "$tmp/log")
		rm -rf "$tmp"
		skip "$module@$version can't be built: $text"
	fi
	mkdir -p "$cache" && rm -rf "$bin" && cp -r "$tmp/bin" "$bin.new" && mv "$bin.new" "$bin"
	rm -rf "$tmp"
}

case ${1:-} in
build)
	build
	echo "$bin"
	exit
	;;
up | run) build ;;
*) bin= ;;
esac
RIG_NAME=containerd2 RIG_CONFIG=3 RIG_CONTAINERD=${bin:+$bin/containerd} exec "$here/containerd.sh" "$@"
