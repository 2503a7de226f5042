#!/bin/bash
# Runs Kubernetes' own [sig-node] conformance tests on a cluster whose one node is `drydock kubelet`
# on a containerd of its own, with Kubernetes' own control plane.
#
#   hack/signode.sh [FOCUS]
#
#   FOCUS                a regular expression of the tests to run; all of sig-node's by default
#   KUBERNETES=DIR       has kube-apiserver, kube-controller-manager, kube-scheduler, etcd, e2e.test,
#                        agnhost and nnp, built. All but etcd (go.etcd.io/etcd/server/v3) come from a
#                        module that requires k8s.io/kubernetes and replaces each k8s.io module that
#                        this lists with the one of its version: test/e2e (by go test -c),
#                        test/images/agnhost and test/images/nonewprivs (without cgo).
#   IMAGE_SHELL=busybox  has busybox be the images' shell: one test goes by its words
#   RIG=containerd2      has containerd 2.x, which image volumes want, in the place of Debian's
#   PROCS=4              how many tests run at once
#   SIGNODE_KEEP=DIR     keeps the logs and the report (junit)
#
# The tests' images are made here under the names that they ask for: agnhost's program, Debian's
# busybox and, as their shell, Debian's bash (busybox's of 1.35 keeps variables from commands whose
# names are no shell's), in one layer. Names of which only that is true stand for what they are not:
# nginx is busybox's httpd, pause is agnhost's, curl is wget, and the kitten, which is pulled, is a
# line of JSON on what says of itself that it is Alpine.
#
# Exit code 0: passed; 1: it did not; 77: it can't run here. It wants root, kubectl, jq, openssl,
# busybox-static and bash-static. The kubelet's root directory is /var/lib/kubelet, which must be free
# of mounts.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
focus=${1:-'\[sig-node\].*\[Conformance\]'}
signing=12h
root=/var/lib/kubelet
node=signode-trial
image=localhost/soak/busybox:1

skip() {
	echo "signode: skipped: $*" >&2
	exit 77
}

if [ -z "${SIGNODE_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "it needs root"
	for f in kubectl jq openssl; do command -v $f >/dev/null || skip "there is no $f"; done
	[ -x /bin/busybox ] || skip "there is no /bin/busybox (Debian's busybox-static)"
	[ -x /bin/bash-static ] || skip "there is no /bin/bash-static (Debian's package of that name)"
	for f in kube-apiserver kube-controller-manager kube-scheduler etcd e2e.test agnhost nnp; do
		[ -x "${KUBERNETES:-}/$f" ] || skip "KUBERNETES has no $f"
	done
	grep -q " $root/" /proc/self/mountinfo && skip "something is mounted below $root"
	if [ -z "${DRYDOCK:-}" ]; then
		(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak) || exit 1
	fi
	(cd "$repo" && go build -o bin/ginkgo github.com/onsi/ginkgo/v2/ginkgo) || exit 1
	dir=$(mktemp -d /tmp/signode.XXXXXX) || exit 1
	SIGNODE_INSIDE=$dir RIG_MIRRORED=registry.k8s.io "$here/${RIG:-containerd}.sh" run "$dir/rig" -- "$0" "$focus"
	code=$?
	[ -z "${SIGNODE_KEEP:-}" ] || { mkdir -p "$SIGNODE_KEEP" && cp -r "$dir"/*.log "$SIGNODE_KEEP"/ && cp -r "$dir/report" "$SIGNODE_KEEP"/ 2>/dev/null; }
	rm -rf --one-file-system "$dir"
	exit $code
fi

dir=$SIGNODE_INSIDE
trial=signode
. "$here/trial.sh"
cd "$dir" || exit 1

# --- images

mkdir -p fs/bin fs/etc fs/tmp fs/uploads fs/usr/local/bin fs/usr/share/nginx/html
chmod 1777 fs/tmp fs/uploads
cp /bin/busybox fs/bin/busybox
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "fs/bin/$applet"; done
cp /bin/bash-static fs/bin/bash
ln -sf "${IMAGE_SHELL:-bash}" fs/bin/sh
printf '#!/bin/sh\nexec wget -q -O - "$@"\n' >fs/bin/curl
chmod 755 fs/bin/curl
cp "$KUBERNETES/agnhost" fs/agnhost
ln -s agnhost fs/agnhost-2
cp "$KUBERNETES/nnp" fs/usr/local/bin/nnp
chmod 6755 fs/usr/local/bin/nnp
echo "nginx" >fs/usr/share/nginx/html/index.html
printf 'root:x:0:0::/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n' >fs/etc/passwd
printf 'root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n' >fs/etc/group
printf 'NAME="Alpine Linux"\nID=alpine\n' >fs/etc/os-release
echo '{"image": "kitten.jpg"}' >fs/data.json
tar -C fs --owner 0 --group 0 -cf layer.tar .
layer=$(sha256sum layer.tar | cut -d' ' -f1)
# made NAME CONFIG: imports an image of that layer.
made() {
	jq -n --argjson config "$2" --arg layer "sha256:$layer" '{architecture: "amd64", os: "linux",
		config: ({Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]} + $config),
		rootfs: {type: "layers", diff_ids: [$layer]}, history: []}' >image.json
	jq -n --arg name "$1" '[{Config: "image.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >manifest.json
	tar -cf made.tar manifest.json image.json layer.tar
	ctr -a "${CONTAINER_RUNTIME_ENDPOINT#unix://}" -n k8s.io images import made.tar >/dev/null || problem "the image $1 can't be imported"
}
# named NAME: the version that the tests ask for.
named() { "$KUBERNETES/e2e.test" --list-images 2>/dev/null | grep -E "/$1:" | sort -u; }
for i in $(named agnhost); do made "$i" '{"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}'; done
for i in $(named pause); do made "$i" '{"Entrypoint": ["/agnhost", "pause"]}'; done
for i in $(named busybox) $(named ipc-utils); do made "$i" '{"Cmd": ["sh"]}'; done
for i in $(named nginx); do made "$i" '{"Cmd": ["httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"]}'; done
for i in $(named nonewprivs); do made "$i" '{"Cmd": ["nnp"]}'; done
for i in $(named nonroot); do made "$i" '{"Cmd": ["sh"], "User": "1234"}'; done
for i in $(named kitten); do
	i=$DRYDOCK_TEST_REGISTRY/${i#*/}
	made "$i" '{}'
	ctr -a "${CONTAINER_RUNTIME_ENDPOINT#unix://}" -n k8s.io images push --plain-http "$i" >/dev/null || problem "the image $i can't be pushed"
done

# --- the cluster

. "$here/controlplane.sh"
# Pods of tests that failed are still there: what is mounted for them must not be.
unmount() { awk -v d="$root/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r m; do umount "$m"; done; }
trap 'for p in approve kubelet scheduler kcm; do stop $p; done; sleep 2; unmount; for p in api etcd; do stop $p -KILL; done; sleep 1' EXIT
start scheduler "$KUBERNETES/kube-scheduler" --kubeconfig "$KUBECONFIG" --leader-elect=false --bind-address 127.0.0.1 --secure-port 16445
cat >config.yaml <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: $CONTAINER_RUNTIME_ENDPOINT
cgroupRoot: /$trial-trial
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
serverTLSBootstrap: true
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/ca.crt}}
authorization: {mode: Webhook}
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
YAML
start kubelet "${DRYDOCK:-$repo/bin/drydock}" kubelet --config config.yaml --kubeconfig "$dir/node.conf" --bootstrap-kubeconfig bootstrap.conf --hostname-override $node --cert-dir "$dir/pki" -v 2
# The API server asks the kubelet for logs only when somebody has approved its serving certificate.
start approve sh -c 'while sleep 1; do
	for c in $(kubectl get csr -o json | jq -r ".items[] | select(.spec.signerName == \"kubernetes.io/kubelet-serving\" and .status.conditions == null) | .metadata.name"); do
		kubectl certificate approve "$c"
	done
done'
for _ in $(seq 120); do kubectl wait --for=condition=Ready node/$node --timeout=1s >/dev/null 2>&1 && break; sleep 1; done
kubectl wait --for=condition=Ready node/$node --timeout=1s >/dev/null || { tail -5 kubelet.log; exit 1; }

# --- the tests

mkdir -p report
"$repo/bin/ginkgo" --procs "${PROCS:-4}" --focus "$focus" --no-color --timeout 3h "$KUBERNETES/e2e.test" -- \
	--kubeconfig "$KUBECONFIG" --provider skeleton --report-dir "$dir/report" >tests.log 2>&1
code=$?
grep -E '^(Ran [0-9]+|PASS|FAIL|SUCCESS|FAIL!)|^  \[FAIL\]' tests.log
[ $code = 0 ] && [ $problems = 0 ] && echo "signode: passed" || { echo "signode: not passed"; exit 1; }
