#!/bin/sh
# Runs ten static pods with `drydock kubelet` on a containerd of our own, kills the
# kubelet with -9 and restarts it in between, and reports whether anything was
# restarted that should have gone on, and whether anything is left over.
#
#   hack/soak.sh [LENGTH]      such as 10m, which is the default; at least 2m
#
# Exit code 0: passed; 77: containerd can't run pods here, a line on stderr says
# why. It wants root, busybox-static (installed with apt-get if missing) and what
# hack/containerd.sh wants. SOAK_KEEP=DIR keeps the kubelets' logs in DIR.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
length=${1:-10m}
busybox=${BUSYBOX:-/bin/busybox}
image=localhost/soak/busybox:1

skip() {
	echo "soak: skipped: $*" >&2
	exit 77
}

# inside is what runs while containerd is up.
if [ "${SOAK_INSIDE:-}" ]; then
	dir=$SOAK_INSIDE
	"$repo/bin/drydock-soak" --make-image "$dir/image.tar" --busybox "$busybox" --image "$image" || exit 1
	ctr -a "${CONTAINER_RUNTIME_ENDPOINT#unix://}" -n k8s.io images import "$dir/image.tar" >/dev/null || exit 1
	"$repo/bin/drydock-soak" --runtime-endpoint "$CONTAINER_RUNTIME_ENDPOINT" --dir "$dir/soak" --image "$image" \
		--kubelet "$repo/bin/drydock kubelet" --for "$length"
	code=$?
	[ $code -eq 0 ] || SOAK_KEEP=${SOAK_KEEP:-$(mktemp -d /tmp/soak-failed.XXXXXX)}
	[ $code -eq 0 ] || echo "soak: the kubelets' logs are in $SOAK_KEEP" >&2
	[ -z "${SOAK_KEEP:-}" ] || { mkdir -p "$SOAK_KEEP" && cp "$dir"/soak/kubelet-*.log "$SOAK_KEEP"/; }
	exit $code
fi

[ "$(id -u)" = 0 ] || skip "it needs root"
if ! [ -x "$busybox" ]; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends busybox-static >/dev/null 2>&1 ||
		skip "there is no $busybox, and apt-get could not install busybox-static"
fi
if [ -z "${SOAK_NO_BUILD:-}" ]; then
	(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak) || exit 1
fi
dir=$(mktemp -d /tmp/soak.XXXXXX) || exit 1
# Two rigs with the same addresses would answer each other's probes.
RIG_SUBNET=${RIG_SUBNET:-10.214.$(($$ % 250)).0/24}
export RIG_SUBNET
# What a failed soak leaves: the kubelet's root directory is a mount.
clean() {
	awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r m; do umount -l "$m"; done
	rm -rf --one-file-system "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM
SOAK_INSIDE=$dir "$here/containerd.sh" run "$dir/rig" -- "$0" "$length"
