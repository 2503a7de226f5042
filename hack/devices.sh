#!/bin/bash
# Kills `drydock kubelet` and Kubernetes' own plugins for devices with -9, in turns, while pods with
# devices begin and end, and tells whether a device is given twice, kept for a pod that is gone, or
# a running pod disturbed. It runs on a containerd of its own, and `drydock up` is the API.
#
#   hack/devices.sh [ROUNDS]      how often; 12 is the default
#
#   DEVICE_PLUGIN=FILE            k8s.io/kubernetes/test/images/sample-device-plugin, built
#   DRA_DRIVER=FILE               k8s.io/kubernetes/test/e2e/dra/test-driver, built
#
# At least one of them is needed. Both are built in a module that requires k8s.io/kubernetes and
# replaces each k8s.io module that this lists with the one of its version.
#
# Exit code 0: passed; 1: it did not; 77: it can't run here. It wants root, kubectl, jq and
# busybox-static. The kubelet's root directory is /var/lib/kubelet, which must be free of mounts.
# DEVICES_KEEP=DIR keeps the logs.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
rounds=${1:-12}
root=/var/lib/kubelet
node=devices-trial
image=localhost/soak/busybox:1

skip() {
	echo "devices: skipped: $*" >&2
	exit 77
}

if [ -z "${DEVICES_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "it needs root"
	command -v kubectl >/dev/null || skip "there is no kubectl"
	command -v jq >/dev/null || skip "there is no jq"
	[ -x /bin/busybox ] || skip "there is no /bin/busybox (Debian's busybox-static)"
	[ -n "${DEVICE_PLUGIN:-}${DRA_DRIVER:-}" ] || skip "neither DEVICE_PLUGIN nor DRA_DRIVER says what to try"
	for f in ${DEVICE_PLUGIN:-} ${DRA_DRIVER:-}; do [ -x "$f" ] || skip "$f is no program"; done
	grep -q " $root/" /proc/self/mountinfo && skip "something is mounted below $root"
	(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak) || exit 1
	dir=$(mktemp -d /tmp/devices.XXXXXX) || exit 1
	DEVICES_INSIDE=$dir "$here/containerd.sh" run "$dir/rig" -- "$0" "$rounds"
	code=$?
	[ -z "${DEVICES_KEEP:-}" ] || { mkdir -p "$DEVICES_KEEP" && cp "$dir"/*.log "$DEVICES_KEEP"/; }
	rm -rf --one-file-system "$dir"
	exit $code
fi

dir=$DEVICES_INSIDE
trial=devices
. "$here/trial.sh"

plugin() {
	if [ "$what" = plugin ]; then
		# Where a kubelet finds it by itself, as this plugin's manifest has it.
		start plugin env PLUGIN_SOCK_DIR=$root/plugins_registry "$DEVICE_PLUGIN"
	else
		start plugin "$DRA_DRIVER" --kubeconfig "$KUBECONFIG" kubelet-plugin --node-name $node --num-devices 2 --cdi-dir "$dir/cdi"
	fi
}

trap 'for p in kubelet plugin up; do stop $p; done; sleep 1' EXIT

up
mkdir -p $root/device-plugins $root/plugins/test-driver.cdi.k8s.io $root/plugins_registry
rm -f $root/plugins_registry/dp.* $root/device-plugins/kubelet_internal_checkpoint $root/dra_manager_state

# pod NAME: one with a device, asked for in the way that is being tried.
pod() {
	local ask="claims: [{name: d}]" claims="resourceClaims: [{name: d, resourceClaimTemplateName: one}]"
	case $what in
	plugin) ask="limits: {example.com/resource: 1}" claims= ;;
	extended) ask="limits: {example.com/by-class: 1}" claims= ;;
	esac
	kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  $claims
  containers:
  - name: c
    image: $image
    command: [/bin/busybox, sh, -c, "trap 'exit 0' TERM; while true; do /bin/busybox sleep 0.1; done"]
    resources: {$ask}
YAML
}

# await SECONDS COMMAND...: until it succeeds.
await() {
	local n=$(($1 * 5))
	shift
	for _ in $(seq $n); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
	done
	return 1
}

phase() { kubectl get pod "$1" -o 'jsonpath={.status.phase}' 2>/dev/null; }
settled() { case $(phase "$1") in Running | Failed | Succeeded) ;; *) false ;; esac }
gone() { ! kubectl get pod "$1" >/dev/null 2>&1; }
free() { # what the scheduler can give out: 2
	if [ "$what" = plugin ]; then
		[ "$(kubectl get node $node -o 'jsonpath={.status.allocatable.example\.com/resource}')" = 2 ]
	else
		[ "$(kubectl get resourceslices -o json | jq '[.items[].spec.devices[]?] | length')" = 2 ]
	fi
}

no_claims() { [ -z "$(kubectl get resourceclaims -o name)" ]; }
running() { [ "$(phase "$1")" = Running ]; }

# given prints the devices of pods that are there, as the API has them or the plugins' files.
given() {
	if [ "$what" = plugin ]; then
		# A pod that is gone is in the file until the next one wants a device.
		local uids
		uids=$(kubectl get pods -o json | jq -c '[.items[] | select(.status.phase == "Running" or .status.phase == "Pending") | .metadata.uid]')
		jq -r --argjson uids "$uids" '.Data.PodDeviceEntries[]? | select(.PodUID as $u | $uids | index($u)) | .DeviceIDs[][]' $root/device-plugins/kubelet_internal_checkpoint
	else
		kubectl get resourceclaims -o json | jq -r '.items[].status.allocation.devices.results[]?.device'
	fi
}

trial() {
	what=$1
	problem_before=$problems
	refused=0
	kubelet
	plugin
	await 20 free || { problem "$what: the node never got its devices: $(kubectl get node $node -o "jsonpath={.status.allocatable}")"; return; }
	if [ "$what" != plugin ]; then
		kubectl apply -f - >/dev/null <<YAML
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: trial}
spec: {extendedResourceName: example.com/by-class, selectors: [{cel: {expression: 'device.driver == "test-driver.cdi.k8s.io"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: d, exactly: {deviceClassName: trial}}]}}}
YAML
	fi
	pod keeper
	await 60 running keeper || { problem "$what: the first pod is $(phase keeper)"; return; }
	was=$(kubectl get pod keeper -o 'jsonpath={.status.containerStatuses[0].containerID}')
	for k in $(seq "$rounds"); do
		pod "p-$k"
		sleep 0.$((RANDOM % 10))
		[ $((k % 3)) = 0 ] || stop kubelet -KILL
		[ $((k % 3)) = 1 ] || stop plugin -KILL
		sleep $((RANDOM % 2)).$((RANDOM % 10))
		[ $((k % 3)) = 0 ] || kubelet
		[ $((k % 3)) = 1 ] || plugin
		await 90 settled "p-$k" || problem "$what: round $k: the pod is $(phase "p-$k") after 90 s: $(kubectl get events --field-selector "involvedObject.name=p-$k" -o 'custom-columns=A:.reason,B:.message' --no-headers | tail -2 | tr '\n' ' ')"
		if [ "$(phase "p-$k")" = Failed ]; then
			# One that was bound while the plugin was away is refused, by a real kubelet, too; one whose
			# kubelet died while it started the container is ended by the runtime.
			why=$(kubectl get pod "p-$k" -o 'jsonpath={.status.reason}{.status.containerStatuses[0].state.terminated.reason}')
			case $why in
			UnexpectedAdmissionError* | OutOfexample.com/resource* | StartError) refused=$((refused + 1)) ;;
			*) problem "$what: round $k: the pod failed with $why: $(kubectl get pod "p-$k" -o 'jsonpath={.status.message}')" ;;
			esac
		else
			two=$(given | sort)
			[ "$(echo "$two" | uniq -d)" = "" ] || problem "$what: round $k: given twice: $two"
			[ "$(echo "$two" | wc -l)" = 2 ] || problem "$what: round $k: two pods have $two"
		fi
		[ "$(kubectl get pod keeper -o 'jsonpath={.status.containerStatuses[0].containerID}')" = "$was" ] && [ "$(phase keeper)" = Running ] ||
			problem "$what: round $k: the pod that ran on is $(phase keeper), and has another container or none"
		kubectl delete pod "p-$k" --wait=false >/dev/null
		await 60 gone "p-$k" || problem "$what: round $k: the pod doesn't go"
		await 60 free || problem "$what: round $k: the node didn't get its devices back"
	done
	kubectl delete pod keeper --wait=false >/dev/null
	await 60 gone keeper || problem "$what: the first pod doesn't go"
	# All that was given is to be had again.
	pod last-1
	pod last-2
	await 60 running last-1 && await 60 running last-2 || problem "$what: at the end two pods are $(phase last-1) and $(phase last-2)"
	kubectl delete pod last-1 last-2 >/dev/null
	if [ "$what" != plugin ]; then
		await 60 no_claims || problem "$what: claims are left: $(kubectl get resourceclaims -o name | tr '\n' ' ')"
		kept=$(jq -r '.Data | fromjson | .ClaimInfoStateList[]?.ClaimName' $root/dra_manager_state | tr '\n' ' ')
		[ -z "$kept" ] || problem "$what: the kubelet still has claims: $kept"
	fi
	echo "devices: $what: $rounds rounds, $refused pods refused or cut off at their start, $((problems - problem_before)) problems"
}

for t in ${DEVICE_PLUGIN:+plugin} ${DRA_DRIVER:+claims extended}; do
	trial $t
	stop kubelet
	stop plugin
	sleep 2
done
[ "$problems" = 0 ]
