#!/bin/bash
# Switches a machine from `drydock kubelet` to Kubernetes' own kubelet and back while pods with
# volumes of a CSI driver run, and tells whether each takes over what the other left: the same
# containers, the same mounts, and in the end none.
#
#   KUBELET=FILE hack/switch.sh
#
#   KUBELET=FILE               the other kubelet, built from the module k8s.io/kubernetes
#   SWITCH_KUBECONFIG=FILE     a real cluster's API, in the place of `drydock up`
#   SWITCH_KEEP=DIR            keeps the logs
#
# Exit code 0: passed; 1: it did not; 77: it can't run here. It wants root, kubectl and
# busybox-static, and runs on a containerd of its own. The kubelets' root directory is
# /var/lib/kubelet, which must be free of mounts.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
root=/var/lib/kubelet
driver=dir.csi.drydock
image=localhost/soak/busybox:1

skip() {
	echo "switch: skipped: $*" >&2
	exit 77
}

if [ -z "${SWITCH_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "it needs root"
	command -v kubectl >/dev/null || skip "there is no kubectl"
	[ -x /bin/busybox ] || skip "there is no /bin/busybox (Debian's busybox-static)"
	[ -x "${KUBELET:-}" ] || skip "KUBELET is no kubelet"
	grep -q " $root/" /proc/self/mountinfo && skip "something is mounted below $root"
	(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak && go build -o bin/csidriver ./hack/csidriver) || exit 1
	dir=$(mktemp -d /tmp/switch.XXXXXX) || exit 1
	SWITCH_INSIDE=$dir "$here/containerd.sh" run "$dir/rig" -- "$0"
	code=$?
	[ -z "${SWITCH_KEEP:-}" ] || { mkdir -p "$SWITCH_KEEP" && cp "$dir"/*.log "$SWITCH_KEEP"/; }
	rm -rf --one-file-system "$dir"
	exit $code
fi

dir=$SWITCH_INSIDE
trial=switch
. "$here/trial.sh"
node=$trial-trial

finish() {
	for p in kubelet driver up; do stop $p; done
	sleep 1
}
trap finish EXIT

theirs() {
	start kubelet "$KUBELET" --config "$dir/config.yaml" --kubeconfig "$KUBECONFIG" --hostname-override "$node" --cert-dir "$dir/pki"
}

# use KUBELET: it goes on where another was killed, and has the node ready.
use() {
	stop kubelet -KILL
	sleep 1
	local since
	since=$(date -u +%FT%TZ)
	"$1"
	for _ in $(seq 120); do
		[[ $(kubectl get node $node -o 'jsonpath={.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}' 2>/dev/null) < $since ]] || return 0
		sleep 0.5
	done
	problem "$1: the node is not ready after a minute"
}

if [ -n "${SWITCH_KUBECONFIG:-}" ]; then cp "$SWITCH_KUBECONFIG" "$KUBECONFIG"; else up; fi
start driver "$repo/bin/csidriver" --data "$dir/volumes" --node $node
sleep 1

# pod NAME: one that counts on a volume of its own, with a secret and a directory beside it.
pod() {
	truncate -s 64M "$dir/volumes/$1.img"
	echo '{"Size":67108864}' >"$dir/volumes/$1.json"
	cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: PersistentVolume
metadata: {name: switch-$1}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: $driver, volumeHandle: $1, fsType: ext4}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: switch-$1, resources: {requests: {storage: 64Mi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: $1}
stringData: {of: $1}
---
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: $node
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 1234}
  containers:
  - name: c
    image: $image
    command: [/bin/busybox, sh, -c, 'n=0; while true; do n=\$((n+1)); echo \$n > /data/n; echo \$n > /scratch/n; /bin/busybox cat /secret/of > /scratch/of; /bin/busybox sleep 0.2; done']
    volumeMounts: [{name: d, mountPath: /data}, {name: s, mountPath: /secret}, {name: e, mountPath: /scratch, subPath: part}]
  volumes:
  - {name: d, persistentVolumeClaim: {claimName: $1}}
  - {name: s, secret: {secretName: $1}}
  - {name: e, emptyDir: {}}
YAML
	for _ in $(seq 240); do
		[ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')" != Running ] || return 0
		sleep 0.5
	done
	problem "pod $1 does not run: $(kubectl get events --field-selector "involvedObject.name=$1" -o 'custom-columns=A:.reason,B:.message' --no-headers | tail -2)"
}

# shape POD: what must be the same under both kubelets.
shape() {
	local uid
	uid=$(kubectl get pod "$1" -o 'jsonpath={.metadata.uid}')
	kubectl get pod "$1" -o 'jsonpath={.status.phase} {.status.podIP} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}'
	echo
	grep -o " $root/pods/$uid/[^ ]*" /proc/self/mountinfo | sort
}

# goes POD: it still counts.
goes() {
	local uid n
	uid=$(kubectl get pod "$1" -o 'jsonpath={.metadata.uid}')
	n=$(cat $root/pods/"$uid"/volumes/kubernetes.io~empty-dir/e/part/n)
	sleep 2
	[ "$(cat $root/pods/"$uid"/volumes/kubernetes.io~empty-dir/e/part/n)" -gt "$n" ] || problem "pod $1 counts no more"
}

same() { # same WHAT POD BEFORE
	local now
	now=$(shape "$2")
	[ "$now" = "$3" ] || problem "$1: pod $2 was
$3
and is
$now"
	goes "$2"
}

gone() { # gone WHAT POD
	local uid
	uid=$(kubectl get pod "$2" -o 'jsonpath={.metadata.uid}')
	kubectl delete pod "$2" --timeout=60s >/dev/null || problem "$1: pod $2 does not go"
	for _ in $(seq 120); do
		[ -d $root/pods/"$uid" ] || grep -q "$uid" /proc/self/mountinfo || return 0
		sleep 0.5
	done
	problem "$1: of pod $2 there is left: $(find $root/pods/"$uid" | head -5)"
}

cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: $driver}
spec: {attachRequired: false, fsGroupPolicy: File}
YAML
kubelet
for _ in $(seq 60); do kubectl get csinode $node -o 'jsonpath={.spec.drivers[*].name}' 2>/dev/null | grep -q . && break; sleep 0.5; done
pod first
pod stays
before=$(shape first)
stays=$(shape stays)

use theirs
sleep 20 # its resyncs, orphan scans and housekeeping
same "under theirs" first "$before"
same "under theirs" stays "$stays"
gone "under theirs" first
pod second
before=$(shape second)

use kubelet
sleep 20
same "under ours again" second "$before"
same "under ours again" stays "$stays"
gone "under ours again" second

use theirs
sleep 10
same "under theirs again" stays "$stays"
use kubelet
gone "at last" stays
for _ in $(seq 60); do grep -q " $root/" /proc/self/mountinfo || break; sleep 0.5; done
grep " $root/" /proc/self/mountinfo && problem "mounts are left"
losetup --noheadings --output BACK-FILE | grep "^$dir/" && problem "loop devices are left"
kubectl delete pvc,secret first second stays >/dev/null
kubectl delete pv switch-first switch-second switch-stays >/dev/null
kubectl delete csidriver $driver >/dev/null
kubectl delete node $node >/dev/null
echo "switch: four switches between two kubelets, $problems problems"
[ "$problems" = 0 ]
