# A control plane of Kubernetes for trials of `drydock kubelet` (door.sh, signode.sh), which read this
# file after trial.sh: etcd, kube-apiserver with Node and RBAC authorization and with trust bundles
# and certificates of pods, and kube-controller-manager, which signs what the node asks for. They set what trial.sh wants,
# KUBERNETES (the folder of those programs) and signing (how long certificates live). It leaves
# $KUBECONFIG (an administrator's), bootstrap.conf (with which a kubelet may ask for its first
# certificate), ca.crt with ca.key, the token $nobody of a user without rights, and the functions
# signed and config.
# shellcheck shell=bash disable=SC2034,SC2154

api=https://127.0.0.1:16443
admin=$(openssl rand -hex 16) token=$(openssl rand -hex 3).$(openssl rand -hex 8) nobody=$(openssl rand -hex 16)
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$trial-ca -keyout ca.key -out ca.crt 2>/dev/null
openssl genrsa -out sa.key 2048 2>/dev/null
# signed NAME SUBJECT EXTENSIONS: a certificate by the authority.
signed() {
	openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -out "$1.crt" -extfile <(printf '%s\n' "$3") 2>/dev/null
}
signed apiserver /CN=kube-apiserver "subjectAltName=IP:127.0.0.1"
signed client /O=system:masters/CN=kube-apiserver-kubelet-client "extendedKeyUsage=clientAuth"
printf '%s,admin,1,"system:masters"\n%s,nobody,2\n' "$admin" "$nobody" >tokens.csv
# config FILE TOKEN: a kubeconfig.
config() {
	cat >"$1" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$api", certificate-authority: $dir/ca.crt}}]
users: [{name: u, user: {token: "$2"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
YAML
}
config "$KUBECONFIG" "$admin"
config bootstrap.conf "$token"
# The API server waits for a minute for clients that don't leave.
trap 'for p in kubelet kcm; do stop $p; done; sleep 2; for p in api etcd; do stop $p -KILL; done; sleep 1' EXIT
start etcd "$KUBERNETES/etcd" --data-dir "$dir/etcd" --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 --listen-peer-urls http://127.0.0.1:12380 --unsafe-no-fsync
start api "$KUBERNETES/kube-apiserver" --etcd-servers http://127.0.0.1:12379 --bind-address 127.0.0.1 --secure-port 16443 --tls-cert-file apiserver.crt --tls-private-key-file apiserver.key \
	--client-ca-file ca.crt --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc --service-account-key-file sa.key --service-account-signing-key-file sa.key \
	--token-auth-file tokens.csv --authorization-mode Node,RBAC --enable-bootstrap-token-auth --enable-admission-plugins NodeRestriction --allow-privileged \
	--feature-gates ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true --runtime-config certificates.k8s.io/v1beta1=true \
	--kubelet-client-certificate client.crt --kubelet-client-key client.key --kubelet-certificate-authority ca.crt --kubelet-preferred-address-types InternalIP
for _ in $(seq 240); do kubectl get --raw /readyz >/dev/null 2>&1 && break; sleep 0.5; done
kubectl get --raw /readyz >/dev/null || { tail -3 api.log; exit 1; }
start kcm "$KUBERNETES/kube-controller-manager" --kubeconfig "$KUBECONFIG" --service-account-private-key-file sa.key --root-ca-file ca.crt --leader-elect=false --bind-address 127.0.0.1 --secure-port 16444 \
	--cluster-signing-cert-file ca.crt --cluster-signing-key-file ca.key --cluster-signing-duration "$signing" --controllers '*,bootstrap-signer-controller,token-cleaner-controller'
kubectl create namespace kube-system --dry-run=client -o yaml | kubectl apply -f - >/dev/null 2>&1
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-${token%.*}, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: "${token%.*}", token-secret: "${token#*.}", usage-bootstrap-authentication: "true", auth-extra-groups: "system:bootstrappers:$trial"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $trial-bootstrap}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-bootstrapper"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:$trial"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $trial-first}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:$trial"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $trial-next}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
YAML
