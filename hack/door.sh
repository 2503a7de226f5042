#!/bin/bash
# Tries `drydock kubelet` as a node of a real API server, with Node and RBAC authorization: it
# bootstraps with a token, gets a short-lived certificate and the next one in time, and kubectl does
# to its pods what people do: logs, exec, attach, cp, port-forward, debug, get --raw. At last its
# server is asked by clients without rights.
#
#   hack/door.sh
#
#   KUBERNETES=DIR     has kube-apiserver, kube-controller-manager and etcd, built. The first two come
#                      from a module that requires k8s.io/kubernetes and replaces each k8s.io module
#                      that this lists with the one of its version; the last is
#                      go.etcd.io/etcd/server/v3.
#   SIGNING=2m         how long certificates live
#
# Exit code 0: passed; 1: it did not; 77: it can't run here. It wants root, kubectl, jq, openssl,
# curl and busybox-static, and runs on a containerd of its own. The kubelet's root directory is
# /var/lib/kubelet, which must be free of mounts. DOOR_KEEP=DIR keeps the logs.
set -u

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
signing=${SIGNING:-2m}
root=/var/lib/kubelet
node=door-trial
image=localhost/soak/busybox:1

skip() {
	echo "door: skipped: $*" >&2
	exit 77
}

if [ -z "${DOOR_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "it needs root"
	for f in kubectl jq openssl curl; do command -v $f >/dev/null || skip "there is no $f"; done
	[ -x /bin/busybox ] || skip "there is no /bin/busybox (Debian's busybox-static)"
	for f in kube-apiserver kube-controller-manager etcd; do [ -x "${KUBERNETES:-}/$f" ] || skip "KUBERNETES has no $f"; done
	grep -q " $root/" /proc/self/mountinfo && skip "something is mounted below $root"
	if [ -z "${DRYDOCK:-}" ]; then
		(cd "$repo" && go build -o bin/drydock ./cmd/drydock && go build -o bin/drydock-soak ./cmd/drydock-soak) || exit 1
	fi
	dir=$(mktemp -d /tmp/door.XXXXXX) || exit 1
	DOOR_INSIDE=$dir "$here/containerd.sh" run "$dir/rig" -- "$0"
	code=$?
	[ -z "${DOOR_KEEP:-}" ] || { mkdir -p "$DOOR_KEEP" && cp "$dir"/*.log "$DOOR_KEEP"/; }
	rm -rf --one-file-system "$dir"
	exit $code
fi

dir=$DOOR_INSIDE
trial=door
. "$here/trial.sh"
cd "$dir" || exit 1
umask 077

. "$here/controlplane.sh"

# --- the node

cat >config.yaml <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: $CONTAINER_RUNTIME_ENDPOINT
cgroupRoot: /$trial-trial
cgroupDriver: cgroupfs
failCgroupV1: false
makeIPTablesUtilChains: false
failSwapOn: false
rotateCertificates: true
serverTLSBootstrap: true
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/ca.crt}}
authorization: {mode: Webhook}
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
clusterDomain: cluster.local
featureGates: {ClusterTrustBundle: true, ClusterTrustBundleProjection: true, PodCertificateRequest: true}
YAML
start kubelet "${DRYDOCK:-$repo/bin/drydock}" kubelet --config config.yaml --kubeconfig "$dir/node.conf" --bootstrap-kubeconfig bootstrap.conf --hostname-override $node --cert-dir "$dir/pki" -v 2

# until_ok WHAT COMMAND...: tries for a minute.
until_ok() {
	local what=$1
	shift
	for _ in $(seq 120); do "$@" >/dev/null 2>&1 && return 0; sleep 0.5; done
	problem "$what: not within a minute"
	return 1
}
is_ready() { kubectl wait --for=condition=Ready "$@" --timeout=1s; }
pending() { kubectl get csr -o json | jq -r '.items[] | select(.spec.signerName == "kubernetes.io/kubelet-serving" and .status.conditions == null) | .metadata.name'; }
approve() { for c in $(pending); do kubectl certificate approve "$c" >/dev/null; done; }
approved() { [ -n "$(pending)" ] && approve; }
ok=0
# want WHAT PATTERN COMMAND...: its output, errors included, must match.
want() {
	local what=$1 pattern=$2 out
	shift 2
	out=$(timeout 30 "$@" 2>&1)
	if [[ $out =~ $pattern ]]; then ok=$((ok + 1)); else problem "$what: got: ${out:0:600}"; fi
}

until_ok "the node is ready" is_ready node/$node || tail -5 kubelet.log
serial() { openssl x509 -in pki/kubelet-client-current.pem -noout -serial; }
first=$(serial)
want "who the node is" '^subject=O ?= ?system:nodes, CN ?= ?system:node:door-trial' openssl x509 -in pki/kubelet-client-current.pem -noout -subject
want "the kubeconfig points to the certificate" kubelet-client-current.pem cat node.conf
until_ok "a serving certificate is asked for" approved
until_ok "it is there" test -e pki/kubelet-server-current.pem

# --- pods

kubectl create serviceaccount default >/dev/null 2>&1
until_ok "the service account" kubectl get serviceaccount default
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: $node
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: $image
    command: [sh, -c, "echo one; echo two; echo err >&2; mkdir /www; echo hello > /www/index.html; httpd -p 8080 -h /www; i=0; while sleep 1; do i=\$((i + 1)); echo tick \$i; done"]
  - name: talks
    image: $image
    stdin: true
    command: [sh, -c, "while read -r l; do echo heard \$l; done; sleep 1000"]
  - name: crashes
    image: $image
    command: [sh, -c, "echo run; sleep 1; exit 1"]
YAML
until_ok "the pod runs" kubectl exec web -c main -- true || kubectl describe pod web | tail -12
until_ok "it says more" sh -c 'kubectl logs web -c main --tail 1 | grep -q "tick [4-9]"'
want "logs" $'(^|\n)one\n(.*\n)?two' kubectl logs web -c main
want "logs --tail" '^tick [0-9]+$' kubectl logs web -c main --tail 1
want "logs --limit-bytes" '^.{3}$' kubectl logs web -c main --limit-bytes 3
want "logs --timestamps" $'(^|\n)20[0-9-]+T[0-9:.]+Z one' kubectl logs web -c main --timestamps
want "logs --since" '^(tick [0-9]+.?)+$' kubectl logs web -c main --since 2s
want "logs --since-time" $'(^|\n)one' kubectl logs web -c main --since-time 2020-01-01T00:00:00Z
want "logs --prefix --all-containers" 'pod/web/main. one' kubectl logs web --all-containers --prefix --ignore-errors
want "logs -f" $'tick [0-9]+\n.*tick [0-9]+' timeout 4 kubectl logs web -c main -f --tail 1
until_ok "it crashes" kubectl logs web -c crashes --previous
want "logs --previous" '^run$' kubectl logs web -c crashes --previous
want "logs of no container" 'container nope is not valid for pod web' kubectl logs web -c nope
want "exec" '^hi$' kubectl exec web -c main -- echo hi
want "exec -i" '^FROM STDIN$' sh -c 'echo from stdin | kubectl exec -i web -c main -- tr a-z A-Z'
want "exec -it" 'tty' script -qec "kubectl exec -it web -c main -- sh -c 'test -t 0 && echo tty'" /dev/null
want "exec that fails" 'command terminated with exit code 3' kubectl exec web -c main -- sh -c 'exit 3'
want "attach" 'heard you' sh -c '(sleep 1; echo you; sleep 2) | timeout 6 kubectl attach -i web -c talks'
echo "there and back" >there
want "cp to a pod" '^$' kubectl cp there web:/tmp/there -c main
want "cp from a pod" '' kubectl cp web:/tmp/there back -c main
want "what was copied" '^there and back$' cat back
kubectl port-forward pod/web 18080:8080 >forward.log 2>&1 &
forward=$!
until_ok "a forwarded port" curl -s http://127.0.0.1:18080/
want "port-forward" '^hello$' curl -s http://127.0.0.1:18080/
kill $forward
# The end of stdin ends containerd's attach.
want "debug" 'in the debugger' sh -c "sleep 14 | kubectl debug web --image $image --image-pull-policy IfNotPresent --target main -i -- sh -c 'sleep 8; echo in the debugger; sleep 2'"
want "get --raw of the node's pods" '"kind":"PodList"' kubectl get --raw /api/v1/nodes/$node/proxy/pods
want "of its health" '^ok$' kubectl get --raw /api/v1/nodes/$node/proxy/healthz
want "of its statistics" '"nodeName": "door-trial"' kubectl get --raw /api/v1/nodes/$node/proxy/stats/summary
want "of its metrics" 'kubelet_running_pods 1' kubectl get --raw /api/v1/nodes/$node/proxy/metrics
want "of its certificates" 'kubelet_certificate_manager_client_ttl_seconds [0-9.e+]+.*' kubectl get --raw /api/v1/nodes/$node/proxy/metrics
want "what top is made of" 'container_memory_working_set_bytes\{container="main",namespace="default",pod="web"\} [1-9]' kubectl get --raw /api/v1/nodes/$node/proxy/metrics/resource
want "its configuration" '"serverTLSBootstrap":true' kubectl get --raw /api/v1/nodes/$node/proxy/configz

# --- certificates of pods

kubectl apply -f - >/dev/null <<YAML
apiVersion: certificates.k8s.io/v1beta1
kind: ClusterTrustBundle
metadata: {name: "example.com:pods:a"}
spec:
  signerName: example.com/pods
  trustBundle: $(jq -Rs . <ca.crt)
---
apiVersion: v1
kind: Pod
metadata: {name: certified}
spec:
  nodeName: $node
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: $image, command: [sleep, "1000"], volumeMounts: [{name: id, mountPath: /id}]}
  volumes:
  - name: id
    projected:
      sources:
      - clusterTrustBundle: {signerName: example.com/pods, labelSelector: {}, path: ca.pem}
      - podCertificate: {signerName: example.com/pods, keyType: ECDSAP256, credentialBundlePath: bundle.pem, keyPath: key.pem, certificateChainPath: chain.pem}
YAML
request() { kubectl get podcertificaterequest -o json | jq -e '.items[] | select(.spec.podName == "certified" and .status.conditions == null)'; }
# sign stands for the signer: for an hour, with the next one due after half of it.
sign() {
	request >request.json || return 1
	jq -r .spec.stubPKCS10Request request.json | base64 -d | openssl req -inform DER -pubkey -noout >pod.pub 2>/dev/null
	openssl x509 -new -force_pubkey pod.pub -subj /CN=certified -days 1 -CA ca.crt -CAkey ca.key -set_serial 7 -extfile <(echo extendedKeyUsage=clientAuth) -out pod.crt 2>/dev/null || return 1
	at() { date -u -d "$(openssl x509 -in pod.crt -noout "$1" | cut -d= -f2) ${2:-}" +%Y-%m-%dT%H:%M:%SZ; }
	jq -n --rawfile chain pod.crt --arg from "$(at -startdate)" --arg to "$(at -enddate)" --arg next "$(at -enddate '-1 hour')" '{status: {
		conditions: [{type: "Issued", status: "True", reason: "Door", message: "trial", lastTransitionTime: $from}],
		certificateChain: $chain, notBefore: $from, notAfter: $to, beginRefreshAt: $next}}' >status.json
	kubectl patch podcertificaterequest "$(jq -r .metadata.name request.json)" --subresource status --type merge --patch-file status.json
}
until_ok "a certificate is asked for and signed" sign
until_ok "the pod has it" kubectl exec certified -- true || kubectl describe pod certified | tail -5
kubectl exec certified -- cat /id/bundle.pem >bundle.pem 2>/dev/null
want "whom the pod trusts" '^pod.crt: OK$' openssl verify -CAfile <(kubectl exec certified -- cat /id/ca.pem) pod.crt
want "the pod's certificate" '^subject=CN ?= ?certified' openssl x509 -in bundle.pem -noout -subject
want "whose key it is" '^same$' sh -c 'openssl pkey -in bundle.pem -pubout | cmp - pod.pub && echo same'
want "the key by itself" '^same$' sh -c 'kubectl exec certified -- cat /id/key.pem /id/chain.pem | cmp - bundle.pem && echo same'
want "how many have one" 'kubelet_podcertificate_states\{signer_name="example.com/pods",state="fresh"\} 1' kubectl get --raw /api/v1/nodes/$node/proxy/metrics
kubectl delete pod certified --wait --timeout=60s >/dev/null || problem "the pod with a certificate doesn't go"

# --- those without rights

ip=$(kubectl get node $node -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
ask=(curl -s --cacert ca.crt -w '|%{http_code}')
want "nobody" '^Unauthorized\|401$' "${ask[@]}" https://"$ip":10250/pods
want "a token that nobody knows" '^Unauthorized\|401$' "${ask[@]}" -H "Authorization: Bearer x" https://"$ip":10250/pods
want "without rights" $'^Forbidden \\(user=nobody, verb=get, resource=nodes, subresource\\(s\\)=\\[pods proxy\\]\\)\n\\|403$' "${ask[@]}" -H "Authorization: Bearer $nobody" https://"$ip":10250/pods
want "without rights to exec" $'^Forbidden \\(user=nobody, verb=create, resource=nodes, subresource\\(s\\)=\\[proxy\\]\\)\n\\|403$' "${ask[@]}" -X POST -H "Authorization: Bearer $nobody" "https://$ip:10250/run/default/web/main?cmd=id"
kubectl create clusterrole door-metrics --verb get --resource nodes/metrics >/dev/null
kubectl create clusterrolebinding door-metrics --clusterrole door-metrics --user ann >/dev/null
signed ann /CN=ann "extendedKeyUsage=clientAuth"
want "with rights to metrics" 'kubelet_running_pods' "${ask[@]}" --cert ann.crt --key ann.key https://"$ip":10250/metrics
want "and to nothing else" $'^Forbidden \\(user=ann, verb=get, resource=nodes, subresource\\(s\\)=\\[pods proxy\\]\\)\n\\|403$' "${ask[@]}" --cert ann.crt --key ann.key https://"$ip":10250/pods

# --- rotation

life=$(($(date -d "$(openssl x509 -in pki/kubelet-client-current.pem -noout -enddate | cut -d= -f2)" +%s) - $(date +%s)))
echo "door: $ok answers as they should be; the certificate ends in $life s"
for _ in $(seq $((life > 0 ? life + 20 : 20))); do
	approve
	[ "$(serial)" = "$first" ] || break
	sleep 1
done
[ "$(serial)" != "$first" ] || problem "the certificate was not rotated"
sleep 12 # connections are changed after 10 s
kubectl get lease -n kube-node-lease $node -o jsonpath='{.spec.renewTime}' >before
sleep 15
kubectl get lease -n kube-node-lease $node -o jsonpath='{.spec.renewTime}' | cmp -s - before && problem "the lease is not renewed after the rotation"
until_ok "logs after the rotation" sh -c 'kubectl logs web -c main --tail 1 | grep -q tick'
grep -q "Certificate rotation detected" kubelet.log || problem "the connections were not changed"
kubectl delete pod web --wait --timeout=60s >/dev/null || problem "the pod doesn't go"

if [ $problems -gt 0 ]; then
	echo "door: $problems problems"
	exit 1
fi
echo "door: passed: $ok answers, certificates rotated"
