#!/bin/bash
# Kills `drydock kubelet` with -9 again and again while pods with claims come and go, and
# tells whether a mount is left or a byte is lost. It runs on a containerd of its own, with
# the driver in hack/csidriver.
#
#   hack/csi.sh [KILLS]        how often the kubelet is killed; 20 is the default
#
# Without more the API is `drydock up`, and volumes are made by this script. Against a real
# cluster's API:
#
#   CSI_KUBECONFIG=FILE        its kubeconfig
#   CSI_SIDECARS=DIR           DIR has csi-provisioner and csi-resizer, which make volumes and,
#                              half way, expand them; with csi-attacher they are attached, too
#   CSI_PAUSE=SECONDS          the kubelet is killed after at most so long; 4 is the default. With
#                              an attacher a volume needs a kubelet that is up for 10 s
#
# Exit code 0: passed; 1: it did not; 77: containerd can't run pods here. It wants root,
# kubectl, xfsprogs and busybox-static. The kubelet's root directory is /var/lib/kubelet, which must
# be free of mounts. CSI_KEEP=DIR keeps the logs.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
kills=${1:-20}
pause=${CSI_PAUSE:-4}
claims=4
# ext4 grows under a mount only by who has CAP_SYS_RESOURCE; xfs needs 300 MiB, which are
# not taken before they are written.
fs=xfs
size=320
root=/var/lib/kubelet
driver=dir.csi.drydock
image=localhost/soak/busybox:1

skip() {
	echo "csi: skipped: $*" >&2
	exit 77
}

if [ -z "${CSI_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "it needs root"
	command -v kubectl >/dev/null || skip "there is no kubectl"
	command -v mkfs.xfs >/dev/null || skip "there is no mkfs.xfs (Debian's xfsprogs)"
	[ -x /bin/busybox ] || skip "there is no /bin/busybox (Debian's busybox-static)"
	grep -q " $root/" /proc/self/mountinfo && skip "something is mounted below $root"
	(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak && go build -o bin/csidriver ./hack/csidriver) || exit 1
	dir=$(mktemp -d /tmp/csi.XXXXXX) || exit 1
	CSI_INSIDE=$dir "$here/containerd.sh" run "$dir/rig" -- "$0" "$kills"
	code=$?
	[ -z "${CSI_KEEP:-}" ] || { mkdir -p "$CSI_KEEP" && cp "$dir"/*.log "$CSI_KEEP"/; }
	rm -rf --one-file-system "$dir"
	exit $code
fi

dir=$CSI_INSIDE
trial=csi
. "$here/trial.sh"

# sidecars starts those that there are. They end when the driver does.
sidecars() {
	for s in csi-provisioner csi-attacher csi-resizer; do
		stop $s
		[ ! -x "$CSI_SIDECARS/$s" ] || start $s "$CSI_SIDECARS/$s" --kubeconfig "$KUBECONFIG" --csi-address $root/plugins/$driver/csi.sock
	done
}

finish() {
	for p in churn1 churn2 churn3 churn4 kubelet driver csi-provisioner csi-attacher csi-resizer up; do
		stop $p
	done
	sleep 1
}
trap finish EXIT

if [ -n "${CSI_KUBECONFIG:-}" ]; then
	cp "$CSI_KUBECONFIG" "$KUBECONFIG"
else
	up
fi
start driver "$repo/bin/csidriver" --data "$dir/volumes" --node csi-trial
sleep 1
sidecars=false
attach=false
if [ -n "${CSI_SIDECARS:-}" ]; then
	sidecars=true
	[ ! -x "$CSI_SIDECARS/csi-attacher" ] || attach=true
	sidecars
fi
kubelet

{
	cat <<YAML
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: $driver}
spec: {attachRequired: $attach, fsGroupPolicy: File}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: csi-trial}
provisioner: $driver
allowVolumeExpansion: true
parameters: {csi.storage.k8s.io/fstype: $fs}
YAML
	for i in $(seq $claims); do
		volume=
		if ! $sidecars; then
			volume="volumeName: trial-$i"
			truncate -s ${size}M "$dir/volumes/trial-$i.img"
			echo "{\"Size\":$((size << 20))}" >"$dir/volumes/trial-$i.json"
			cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: trial-$i}
spec:
  capacity: {storage: ${size}Mi}
  accessModes: [ReadWriteOnce]
  storageClassName: csi-trial
  csi: {driver: $driver, volumeHandle: trial-$i, fsType: $fs}
YAML
		fi
		cat <<YAML
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim-$i}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: csi-trial
  $volume
  resources: {requests: {storage: ${size}Mi}}
YAML
	done
} | kubectl apply -f - >/dev/null || exit 1

# pod PRINTS NAME CLAIM: it finds the numbers that all before it wrote, and writes on. A
# number is said when it is on the disk.
pod() {
	cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  securityContext: {fsGroup: 1234}
  containers:
  - name: c
    image: $image
    command:
    - /bin/busybox
    - sh
    - -c
    - |
      n=0
      while read -r k; do n=\$((n+1)); [ "\$k" = "\$n" ] || { echo "BAD line \$n: \$k"; exit 1; }; done < /data/log
      echo "found \$n"
      trap 'exit 0' TERM
      while true; do n=\$((n+1)); echo \$n >> /data/log; /bin/busybox sync; echo \$n; /bin/busybox sleep 0.05; done
    volumeMounts: [{name: d, mountPath: /data}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: $2}}]
YAML
}

said() { cat /var/log/pods/default_"$1"_*/c/*.log 2>/dev/null | cut -d' ' -f4-; }

# churn I: pods of one claim, one after the other, until the file end is there.
churn() {
	local i=$1 round=0 last=0 name found uid why
	while [ ! -e "$dir/end" ]; do
		round=$((round + 1))
		name=churn$$-$i-$round
		pod "$name" "claim-$i" | kubectl apply -f - >/dev/null || continue
		for _ in $(seq 600); do
			said "$name" | grep -q '^found' && break
			[ "$(kubectl get pod "$name" -o 'jsonpath={.status.phase}')" != Failed ] || break
			sleep 0.2
		done
		found=$(said "$name" | grep '^found' | cut -d' ' -f2)
		why=$(kubectl get pod "$name" -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason}')
		if [ "$why" = StartError ]; then
			# The kubelet died while it started the container, and the runtime gave up with it.
			echo "$name" >>"$dir/cut.$i"
		elif [ -z "$found" ]; then
			echo "$name: it never found its data: $(kubectl get pod "$name" -o 'jsonpath={.status.phase} {.status.reason} {.status.message} {.status.containerStatuses[0].state}') $(said "$name" | head -1)"
			kubectl get events --field-selector "involvedObject.name=$name" -o 'custom-columns=A:.reason,B:.message' --no-headers | tail -3
		elif [ "$found" -lt "$last" ]; then
			echo "$name: LOST: it found $found numbers where $last were written"
		fi
		sleep 0.$((RANDOM % 10))
		last=$(said "$name" | grep -v found | tail -1)
		last=${last:-${found:-0}}
		if [ $((RANDOM % 6)) = 0 ]; then
			uid=$(kubectl get pod "$name" -o 'jsonpath={.metadata.uid}')
			kubectl delete pod "$name" --force --grace-period=0 >/dev/null 2>&1
			# Its container writes for as long as no kubelet ends it: two would be one too many.
			for _ in $(seq 300); do
				[ -d "$root/pods/$uid" ] || break
				sleep 0.2
			done
			[ ! -d "$root/pods/$uid" ] || echo "$name: still there a minute after it was deleted by force"
		else
			kubectl delete pod "$name" >/dev/null
		fi
		echo $round >"$dir/rounds.$i"
	done
}

for i in $(seq $claims); do
	churn "$i" >"$dir/churn$i.log" 2>&1 &
	echo $! >"$dir/churn$i.pid"
done

for k in $(seq "$kills"); do
	sleep $((RANDOM % pause)).$((RANDOM % 10))
	stop kubelet -KILL
	[ $((RANDOM % 4)) != 0 ] || sleep 2
	if [ $((k % 10)) = 0 ]; then # the driver, too
		stop driver -KILL
		start driver "$repo/bin/csidriver" --data "$dir/volumes" --node csi-trial
		! $sidecars || sidecars
	fi
	kubelet
	if $sidecars && [ "$k" = $((kills / 2)) ]; then
		for i in $(seq $claims); do
			kubectl patch pvc "claim-$i" -p "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"$((size * 2))Mi\"}}}}" >/dev/null
		done
	fi
done

touch "$dir/end"
for i in $(seq $claims); do
	tail --pid="$(cat "$dir/churn$i.pid")" -f /dev/null
done
if $sidecars; then # a volume grows while a pod has it
	for i in $(seq $claims); do
		pod "last$$-$i" "claim-$i" | kubectl apply -f - >/dev/null
	done
	for _ in $(seq 240); do
		[ "$(kubectl get pvc -o 'jsonpath={.items[*].status.capacity.storage}' | tr ' ' '\n' | grep -c "^$((size * 2))Mi$")" != $claims ] || break
		sleep 0.5
	done
fi
kubectl delete pod --all >/dev/null
cat "$dir"/churn?.log | grep -v '^Warning: Immediate' >"$dir/problems"
while read -r line; do problem "$line"; done <"$dir/problems"

# What is to be gone within a minute: mounts, loop devices, directories of pods and of volumes,
# attachments.
left() {
	grep -o " $root/[^ ]*" /proc/self/mountinfo | grep -v "^ $root$"
	losetup --noheadings --output BACK-FILE | grep "^$dir/"
	ls -d $root/pods/*/ $root/plugins/kubernetes.io/csi/$driver/*/ 2>/dev/null
	kubectl get volumeattachment -o name
	kubectl get node csi-trial -o 'jsonpath={.status.volumesInUse[*]}'
}
for _ in $(seq 120); do
	[ -n "$(left)" ] || break
	sleep 0.5
done
for line in $(left); do problem "left: $line"; done
if $sidecars; then
	for i in $(seq $claims); do
		has=$(kubectl get pvc "claim-$i" -o 'jsonpath={.status.capacity.storage}')
		[ "$has" = $((size * 2))Mi ] || problem "claim-$i has $has, and was expanded to $((size * 2))Mi"
	done
	kubectl delete pvc --all --timeout=60s >/dev/null || problem "the claims don't go"
	for _ in $(seq 60); do
		[ -n "$(ls "$dir/volumes")" ] || break
		sleep 0.5
	done
	[ -z "$(ls "$dir/volumes")" ] || problem "volumes are left: $(ls "$dir/volumes")"
fi
kubectl delete csidriver $driver >/dev/null
kubectl delete storageclass csi-trial >/dev/null
echo "csi: $kills kills of the kubelet, $(cat "$dir"/rounds.* | paste -sd+ | bc) pods, of them $(cat "$dir"/cut.* 2>/dev/null | wc -l) cut off at their start, $problems problems"
[ "$problems" = 0 ]
