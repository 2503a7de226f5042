package decode

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestDecodesAsKubernetesDoes compares with what Kubernetes' own library makes
// of the same text.
func TestDecodesAsKubernetesDoes(t *testing.T) {
	for _, tt := range []struct {
		name string
		into func() any
		text string
	}{
		{"pod", func() any { return &v1.Pod{} }, `
apiVersion: v1
kind: Pod
metadata: {name: web, creationTimestamp: 2026-01-01T00:00:00Z, deletionGracePeriodSeconds: 3, labels: {a: "1"}}
spec:
  terminationGracePeriodSeconds: 0
  tolerations: [{key: a, operator: Exists, tolerationSeconds: 30}]
  containers:
  - name: app
    image: app:1
    args: ["--x", "yes"]
    env: [{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    ports: [{containerPort: 80, protocol: TCP}]
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 2}}
    livenessProbe: {httpGet: {path: /, port: http}, periodSeconds: 5}
    readinessProbe: {tcpSocket: {port: 8080}}
    securityContext: {runAsNonRoot: true, runAsUser: 1000}
    volumeMounts: [{name: v, mountPath: /v, readOnly: true}]
  volumes:
  - name: v
    configMap: {name: c, defaultMode: 420, optional: true}
status:
  phase: Running
  startTime: "2026-01-01T00:00:01Z"
`},
		{"secret", func() any { return &v1.Secret{} }, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: aGVsbG8=}\nstringData: {b: c}\nimmutable: true\n"},
		{"service", func() any { return &v1.Service{} }, "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80, targetPort: http}, {port: 81, targetPort: 8081}]}\n"},
		{"kubelet", func() any { return &kubeletconfig.KubeletConfiguration{} }, `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
syncFrequency: 1m
nodeStatusUpdateFrequency: 10s
evictionHard: {memory.available: 500Mi, nodefs.available: 10%}
evictionSoftGracePeriod: {memory.available: 1m30s}
featureGates: {A: true}
registerWithTaints: [{key: a, effect: NoSchedule}]
systemReserved: {cpu: 100m}
crashLoopBackOff: {maxContainerRestartPeriod: 30s}
containerLogMaxFiles: 3
cpuCFSQuota: false
logging: {flushFrequency: 5s, verbosity: 2}
memorySwap: {swapBehavior: NoSwap}
imageMaximumGCAge: 0s
`},
	} {
		want, got := tt.into(), tt.into()
		if err := sigsyaml.UnmarshalStrict([]byte(tt.text), want); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		r := NewReader(nil)
		r.Documents("f", []byte(tt.text))[0].Decode(got)
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !apiequality.Semantic.DeepEqual(want, got) {
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			t.Errorf("%s:\n got %s\nwant %s", tt.name, b, a)
		}
	}
}
