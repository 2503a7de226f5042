#!/bin/sh
# Brings a containerd of our own up for the conformance checks, and takes it
# down without a trace: its root, state, sockets, CNI networks and registry are
# in one folder.
#
#   hack/containerd.sh up DIR           start it in DIR (which must not exist)
#   hack/containerd.sh down DIR         stop it, remove what it made, and DIR
#   hack/containerd.sh run DIR -- CMD   up, CMD, down; CMD's exit code
#
# CMD finds in its environment CONTAINER_RUNTIME_ENDPOINT, the CRI socket, and
# DRYDOCK_TEST_REGISTRY, the registry that serves the test images. After "up"
# both are in DIR/env.
#
# Exit code 77: containerd can't run pods here; a line on stderr says why.
#
# RIG_MIRRORED is a registry that this one stands in for, such as registry.k8s.io.
#
# It wants root. containerd, runc and the CNI plugins are Debian's; what is
# missing of them is installed with apt-get. hack/containerd2.sh sets
# RIG_CONTAINERD (an executable, with its shim beside it) and RIG_CONFIG=3.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
name=${RIG_NAME:-containerd}
containerd=${RIG_CONTAINERD:-containerd}
config_version=${RIG_CONFIG:-2}
drydock=${DRYDOCK:-$repo/bin/drydock}
# Pods get addresses of a network that goes by the folder, so that several
# containerds can be up.
subnet=${RIG_SUBNET:-10.213.$(($(printf %s "${2:-}" | cksum | cut -d' ' -f1) % 256)).0/24}

skip() {
	echo "$name: skipped: $*" >&2
	exit 77
}

die() {
	echo "$name: $*" >&2
	exit 1
}

# install gets what is missing.
install() {
	missing=
	[ -n "${RIG_CONTAINERD:-}" ] || command -v containerd >/dev/null || missing="$missing containerd"
	command -v runc >/dev/null || missing="$missing runc"
	[ -n "$(cni_bin)" ] || missing="$missing containernetworking-plugins"
	command -v iptables >/dev/null || missing="$missing iptables"
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || skip "there is no$missing, and no apt-get to install it"
	export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # RUNLEVEL: start no services
	# shellcheck disable=SC2086
	apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
		{ apt-get update >/dev/null 2>&1 && apt-get install -y --no-install-recommends $missing >/dev/null 2>&1; } ||
		skip "apt-get could not install$missing"
	[ -n "$(cni_bin)" ] || skip "there are no CNI plugins in /usr/lib/cni or /opt/cni/bin"
}

cni_bin() {
	for d in /usr/lib/cni /opt/cni/bin; do
		if [ -x $d/ptp ] && [ -x $d/host-local ] && [ -x $d/portmap ] && [ -x $d/loopback ]; then
			echo $d
			return
		fi
	done
}

# snapshotter reports whether overlays work below a folder; without them layers
# are copied.
snapshotter() {
	mkdir -p "$1/try/l" "$1/try/u" "$1/try/w" "$1/try/m"
	if mount -t overlay overlay -o "lowerdir=$1/try/l,upperdir=$1/try/u,workdir=$1/try/w" "$1/try/m" 2>/dev/null; then
		umount "$1/try/m"
		echo overlayfs
	else
		echo native
	fi
	rm -rf "$1/try"
}

write_cni() {
	mkdir -p "$1/cni/net.d" "$1/cni/state"
	cat >"$1/cni/net.d/10-drydock.conflist" <<END
{
  "cniVersion": "0.4.0",
  "name": "$2",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "dataDir": "$1/cni/state",
        "ranges": [[{"subnet": "$subnet"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
END
}

# write_config writes containerd's configuration. On CI machines the capability
# to lower an OOM score may be missing, hence restrict_oom_score_adj; netns are
# below the state folder, so that nothing of them is left elsewhere.
write_config() {
	dir=$1 registry=$2 snapshots=$3
	cat >"$dir/config.toml" <<END
version = $config_version
root = "$dir/root"
state = "$dir/state"

[grpc]
  address = "$dir/c.sock"

[ttrpc]
  address = "$dir/c.sock.ttrpc"

END
	if [ "$config_version" = 2 ]; then
		cat >>"$dir/config.toml" <<END
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$registry/drydock/drydock-pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshots"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "$dir/state/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(cni_bin)"
    conf_dir = "$dir/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."$registry"]
    endpoint = ["http://$registry"]
END
		[ -z "${RIG_MIRRORED:-}" ] || cat >>"$dir/config.toml" <<END
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."$RIG_MIRRORED"]
    endpoint = ["http://$registry"]
END
		return
	fi
	for host in "$registry" ${RIG_MIRRORED:-}; do
		mkdir -p "$dir/certs.d/$host"
		cat >"$dir/certs.d/$host/hosts.toml" <<END
server = "http://$registry"
[host."http://$registry"]
  capabilities = ["pull", "resolve"]
END
	done
	cat >>"$dir/config.toml" <<END
disabled_plugins = ["io.containerd.nri.v1.nri"]

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "$snapshots"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "$registry/drydock/drydock-pause:1"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "$dir/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        Root = "$dir/state/runc"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["$(cni_bin)"]
    conf_dir = "$dir/cni/net.d"

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
END
}

# remember writes down what of the machine a containerd changes for good, so
# that down can undo it.
remember() {
	mkdir -p "$1/before"
	cat /proc/sys/net/ipv4/ip_forward >"$1/before/ip_forward" 2>/dev/null
	ls /run/containerd/s >"$1/before/sockets" 2>/dev/null
	find /sys/fs/cgroup -maxdepth 3 -type d -name k8s.io >"$1/before/cgroups" 2>/dev/null
	[ -d /run/containerd ] && : >"$1/before/run"
	:
}

up() {
	dir=$1
	[ "$(id -u)" = 0 ] || skip "it needs root"
	[ ${#dir} -le 80 ] || die "up: $dir is too long for the path of a socket"
	[ ! -e "$dir" ] || die "up: $dir is there already (hack/containerd.sh down removes it)"
	[ -x "$drydock" ] || die "up: there is no $drydock (make build)"
	install
	mkdir -p "$dir" || die "up: can't make $dir"
	remember "$dir"
	network=drydock-$(basename "$dir" | tr -c 'a-zA-Z0-9\n' -)-$$
	echo "$network" >"$dir/network"

	setsid "$drydock" rig images --listen "${RIG_REGISTRY:-127.0.0.1:0}" --address-file "$dir/registry" >"$dir/registry.log" 2>&1 &
	echo $! >"$dir/registry.pid"
	await "$dir" registry.pid test -s "$dir/registry" ||
		give_up "$dir" die "up: the registry: $(tail -n 1 "$dir/registry.log")"
	registry=$(cat "$dir/registry")

	write_cni "$dir" "$network"
	write_config "$dir" "$registry" "$(snapshotter "$dir")"
	PATH=$(dirname "$(command -v "$containerd")"):$PATH setsid "$containerd" --config "$dir/config.toml" >"$dir/containerd.log" 2>&1 &
	echo $! >"$dir/containerd.pid"
	await "$dir" containerd.pid test -S "$dir/c.sock" ||
		give_up "$dir" skip "containerd does not start: $(tail -n 1 "$dir/containerd.log")"
	"$drydock" rig probe --runtime-endpoint "unix://$dir/c.sock" --test-registry "$registry" 2>"$dir/probe.log" ||
		give_up "$dir" skip "containerd can't run a pod here: $(tail -n 1 "$dir/probe.log")"
	{
		echo "CONTAINER_RUNTIME_ENDPOINT=unix://$dir/c.sock"
		echo "DRYDOCK_TEST_REGISTRY=$registry"
	} >"$dir/env"
}

# await waits until a command succeeds, or 30 s, or the end of the process whose
# number is in a file.
await() {
	dir=$1 pidfile=$2
	shift 2
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -le 300 ] && alive "$(cat "$dir/$pidfile")" || return 1
		sleep 0.1
	done
}

# alive reports whether a process runs (one that nobody has waited for does not).
alive() {
	grep -q '^State:[^Z]*$' "/proc/$1/status" 2>/dev/null
}

# give_up takes down what is up so far, and ends with die or skip.
give_up() {
	dir=$1 how=$2
	shift 2
	text=$*
	[ -z "${RIG_KEEP_LOGS:-}" ] || cp "$dir"/*.log "$RIG_KEEP_LOGS"/ 2>/dev/null
	down "$dir"
	$how "$text"
}

# ours reports whether a process is of a folder: its command line names it.
ours() {
	alive "$1" && tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$2/"
}

# stop ends a process by the number in a file of a folder: TERM, and after 10 s
# KILL. The number may be another's by now.
stop() {
	[ -s "$1/$2" ] || return 0
	pid=$(cat "$1/$2")
	tries=0
	while ours "$pid" "$1" && [ $tries -lt 100 ]; do
		[ $tries -gt 0 ] || kill "$pid" 2>/dev/null
		tries=$((tries + 1))
		sleep 0.1
	done
	ours "$pid" "$1" && kill -9 "$pid" 2>/dev/null
	rm -f "$1/$2"
}

down() {
	dir=${1%/}
	[ -d "$dir" ] || return 0
	[ -f "$dir/network" ] || die "down: $dir is not a folder of ours"
	if [ -S "$dir/c.sock" ] && [ -s "$dir/containerd.pid" ] && alive "$(cat "$dir/containerd.pid")"; then
		"$drydock" rig clear --runtime-endpoint "unix://$dir/c.sock" >&2 || :
	fi
	tasks=$dir/state/io.containerd.runtime.v2.task/k8s.io
	ids=$(ls "$tasks" 2>/dev/null)
	stop "$dir" containerd.pid
	stop "$dir" registry.pid
	# What could not be removed in peace: shims are found by their socket's
	# name, the containers' processes by their cgroups.
	for pid in $(running "containerd-shim.*-address $dir/c.sock"); do
		kill -9 "$pid" 2>/dev/null
	done
	for id in $ids; do
		for p in $(grep -l -- "$id" /proc/[0-9]*/cgroup 2>/dev/null); do
			p=${p%/cgroup}
			kill -9 "${p#/proc/}" 2>/dev/null
		done
	done
	unmount "$dir"
	forget "$dir" "$ids"
	# What is mounted nevertheless is not emptied.
	rm -rf --one-file-system "$dir" || die "down: $dir can't be removed"
}

# running lists the processes whose command line fits an expression.
running() {
	for p in /proc/[0-9]*; do
		cat "$p/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q -- "$1" && echo "${p#/proc/}"
	done
}

# unmount takes down every mount below a folder, the latest first.
unmount() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		mounts=$(awk -v d="$1/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
		[ -n "$mounts" ] || return 0
		echo "$mounts" | while read -r m; do
			umount "$m" 2>/dev/null || umount -l "$m" 2>/dev/null
		done
	done
}

# forget undoes what is left of a containerd outside its folder: rules and
# chains of its port mappings, results of CNI, sockets of shims, cgroups.
forget() {
	dir=$1 ids=$2
	network=$(cat "$dir/network")
	for chain in $(iptables -w -t nat -S 2>/dev/null | grep -F "$network\\\"" | grep -o 'CNI-[DS]N-[0-9a-z]*' | sort -u); do
		iptables -w -t nat -S | grep -- "-j $chain" | sed 's/^-A/-D/' | while read -r rule; do
			eval "iptables -w -t nat $rule"
		done
		iptables -w -t nat -F "$chain" && iptables -w -t nat -X "$chain"
	done 2>/dev/null
	# What all port mappings share goes with the last.
	if ! iptables -w -t nat -S CNI-HOSTPORT-DNAT 2>/dev/null | grep -q '^-A'; then
		for chain in CNI-HOSTPORT-DNAT CNI-HOSTPORT-SETMARK CNI-HOSTPORT-MASQ; do
			iptables -w -t nat -S 2>/dev/null | grep -- "-j $chain" | sed 's/^-A/-D/' | while read -r rule; do
				eval "iptables -w -t nat $rule"
			done
			iptables -w -t nat -F $chain && iptables -w -t nat -X $chain
		done 2>/dev/null
	fi
	rm -f "/var/lib/cni/results/$network-"*
	for id in $ids; do
		rm -f "/var/lib/cni/results/"*"-$id-"*
	done
	rmdir /var/lib/cni/results /var/lib/cni/cache /var/lib/cni 2>/dev/null
	for s in /run/containerd/s/*; do
		[ -e "$s" ] || continue
		grep -qx "$(basename "$s")" "$dir/before/sockets" || grep -q " $s\$" /proc/net/unix || rm -f "$s"
	done
	for id in $ids; do
		find /sys/fs/cgroup -depth -type d -name "*$id*" -exec rmdir {} \; 2>/dev/null
	done
	find /sys/fs/cgroup -maxdepth 3 -type d -name k8s.io 2>/dev/null | while read -r g; do
		grep -qx "$g" "$dir/before/cgroups" || rmdir "$g" 2>/dev/null
	done
	if [ -s "$dir/before/ip_forward" ] && [ -z "$(running '^[^ ]*drydock rig images')" ]; then
		cat "$dir/before/ip_forward" >/proc/sys/net/ipv4/ip_forward 2>/dev/null
	fi
	:
}

run() {
	dir=$1
	shift
	[ "${1:-}" = -- ] && shift
	[ $# -gt 0 ] || die "run: which command? hack/containerd.sh run DIR -- CMD"
	trap 'down "$dir"; exit 130' INT TERM HUP
	up "$dir"
	CONTAINER_RUNTIME_ENDPOINT="unix://$dir/c.sock" DRYDOCK_TEST_REGISTRY=$(cat "$dir/registry") "$@"
	code=$?
	trap '' INT TERM HUP
	[ $code = 0 ] || [ -z "${RIG_KEEP_LOGS:-}" ] || cp "$dir"/*.log "$RIG_KEEP_LOGS"/
	down "$dir"
	exit $code
}

[ $# -ge 2 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
verb=$1
# Mounts are known by their real paths.
dir=$2
case $dir in
/?*)
	parent=$(cd "$(dirname "$dir")" 2>/dev/null && pwd -P)
	dir=${parent:-$(dirname "$dir")}
	dir=${dir%/}/$(basename "$2")
	;;
*) die "$verb: $dir is not the absolute path of a folder" ;;
esac
shift 2
case $verb in
up) up "$dir" ;;
down) down "$dir" ;;
run) run "$dir" "$@" ;;
*) echo "$name: $verb is none of up, down and run" >&2; exit 2 ;;
esac
