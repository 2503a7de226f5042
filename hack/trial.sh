# What trials of `drydock kubelet` on a containerd of their own have in common (csi.sh, devices.sh),
# which read this file. They set repo (the repository), trial (its name; its node is NAME-trial),
# dir (their folder) and image, and have CONTAINER_RUNTIME_ENDPOINT.
# shellcheck shell=bash disable=SC2154

export KUBECONFIG=$dir/kubeconfig
problems=0
problem() {
	echo "$trial: $*"
	problems=$((problems + 1))
}

start() { # start NAME COMMAND...: in the background; its pid is in NAME.pid
	local what=$1
	shift
	setsid "$@" >>"$dir/$what.log" 2>&1 &
	echo $! >"$dir/$what.pid"
	disown
}

stop() { # stop NAME [SIGNAL]
	[ ! -f "$dir/$1.pid" ] || kill "${2:--TERM}" "$(cat "$dir/$1.pid")" 2>/dev/null
}

kubelet() {
	start kubelet "$repo/bin/drydock" kubelet --config "$dir/config.yaml" --kubeconfig "$KUBECONFIG" --hostname-override "$trial-trial" --cert-dir "$dir/pki"
}

# up serves an API without nodes, and returns when it answers.
up() {
	start up "$repo/bin/drydock" up --nodes 0 --kubeconfig "$KUBECONFIG"
	for _ in $(seq 50); do
		kubectl get namespace default >/dev/null 2>&1 && break
		sleep 0.2
	done
}

cat >"$dir/config.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: $CONTAINER_RUNTIME_ENDPOINT
cgroupRoot: /$trial-trial
cgroupDriver: cgroupfs
failCgroupV1: false
makeIPTablesUtilChains: false
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
YAML
for c in /sys/fs/cgroup/*/; do mkdir -p "$c/$trial-trial" 2>/dev/null; done

"$repo/bin/drydock-soak" --make-image "$dir/image.tar" --busybox /bin/busybox --image "$image" || exit 1
ctr -a "${CONTAINER_RUNTIME_ENDPOINT#unix://}" -n k8s.io images import "$dir/image.tar" >/dev/null || exit 1
