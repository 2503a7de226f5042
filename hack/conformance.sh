#!/bin/sh
# Runs the conformance checks against a runtime that it brings up:
#
#   hack/conformance.sh containerd|containerd2|fakecri [FLAG]...
#
# The flags go to drydock conformance. Where containerd can't run pods the step
# is skipped by name, with the reason, and the exit code is 0; with
# RIG_REQUIRED=1 that is a failure.
set -u

here=$(cd "$(dirname "$0")" && pwd)
runtime=${1:-}
case $runtime in
containerd | containerd2 | fakecri) shift ;;
*)
	echo "conformance: name a runtime: containerd, containerd2 or fakecri" >&2
	exit 2
	;;
esac
export DRYDOCK="${DRYDOCK:-$(dirname "$here")/bin/drydock}"
work=$(mktemp -d "${TMPDIR:-/tmp}/drydock-conformance.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP
if [ "$runtime" = fakecri ]; then
	"$DRYDOCK" fakecri --listen "unix://$work/cri.sock" --root "$work/root" >"$work/log" 2>&1 &
	pid=$!
	trap 'kill $pid 2>/dev/null; wait $pid; rm -rf --one-file-system "$work"' EXIT
	tries=0
	until grep -q ready "$work/log"; do
		tries=$((tries + 1))
		if [ $tries -gt 100 ] || ! kill -0 $pid 2>/dev/null; then
			cat "$work/log" >&2
			exit 1
		fi
		sleep 0.1
	done
	"$DRYDOCK" conformance --runtime-endpoint "unix://$work/cri.sock" "$@"
	exit $?
fi
# shellcheck disable=SC2016
"$here/$runtime.sh" run "$work/rig" -- sh -c \
	'exec "$DRYDOCK" conformance --runtime-endpoint "$CONTAINER_RUNTIME_ENDPOINT" "$@"' conformance "$@"
code=$?
if [ $code = 77 ]; then
	echo "SKIPPED: conformance on $runtime (the reason is above)"
	[ -z "${RIG_REQUIRED:-}" ] || exit 1
	exit 0
fi
exit $code
