package store

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func TestValidatePod(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
	for _, tc := range []struct{ name, spec, want string }{
		{"no containers", "spec: {}", `spec.containers: Required value`},
		{"no image", "spec: {containers: [{name: a}]}", `spec.containers[0].image: Required value`},
		{"image with a space", "spec: {containers: [{name: a, image: ' x'}]}", `spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace`},
		{"no name", "spec: {containers: [{image: x}]}", `spec.containers[0].name: Required value`},
		{"bad name", "spec: {containers: [{name: A_b, image: x}]}", `spec.containers[0].name: Invalid value: "A_b": a lowercase RFC 1123 label`},
		{"same name", "spec: {containers: [{name: a, image: x}, {name: a, image: x}]}", `spec.containers[1].name: Duplicate value: "a"`},
		{"same name in init", "spec: {initContainers: [{name: a, image: x}], containers: [{name: a, image: x}]}", `spec.initContainers[0].name: Duplicate value: "a"`},
		{"restart policy", "spec: {restartPolicy: Sometimes, containers: [{name: a, image: x}]}", `spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		{"pull policy", "spec: {containers: [{name: a, image: x, imagePullPolicy: Maybe}]}", `spec.containers[0].imagePullPolicy: Unsupported value: "Maybe"`},
		{"request over limit", "spec: {containers: [{name: a, image: x, resources: {requests: {cpu: '2'}, limits: {cpu: '1'}}}]}", `spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{"negative", "spec: {containers: [{name: a, image: x, resources: {requests: {memory: '-1'}}}]}", `spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`},
		{"unknown resource", "spec: {containers: [{name: a, image: x, resources: {requests: {gpu: '1'}}}]}", `must be a standard resource for containers`},
		{"extended without limit", "spec: {containers: [{name: a, image: x, resources: {requests: {x.io/gpu: '1'}}}]}", `spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources`},
		{"missing volume", "spec: {containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}", `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"mounted twice", "spec: {volumes: [{name: v}], containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v}]}]}", `spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique`},
		{"two sources", "spec: {volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}], containers: [{name: a, image: x}]}", `spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type`},
		{"probe without handler", "spec: {containers: [{name: a, image: x, livenessProbe: {}}]}", `spec.containers[0].livenessProbe: Required value: must specify a handler type`},
		{"probe with two handlers", "spec: {containers: [{name: a, image: x, livenessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}}]}", `spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type`},
		{"liveness success", "spec: {containers: [{name: a, image: x, livenessProbe: {successThreshold: 2, exec: {command: [x]}}}]}", `spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`},
		{"probe of an init container", "spec: {initContainers: [{name: i, image: x, livenessProbe: {exec: {command: [x]}}}], containers: [{name: a, image: x}]}", `spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`},
		{"port range", "spec: {containers: [{name: a, image: x, ports: [{containerPort: 70000}]}]}", `spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`},
		{"protocol", "spec: {containers: [{name: a, image: x, ports: [{containerPort: 1, protocol: ICMP}]}]}", `spec.containers[0].ports[0].protocol: Unsupported value: "ICMP"`},
		{"env", "spec: {containers: [{name: a, image: x, env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}", `spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when ` + "`value` is not empty"},
		{"deadline", "spec: {activeDeadlineSeconds: 0, containers: [{name: a, image: x}]}", `spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`},
		{"toleration", "spec: {tolerations: [{operator: Exists, effect: Never}], containers: [{name: a, image: x}]}", `spec.tolerations[0].effect: Unsupported value: "Never"`},
		{"dns none", "spec: {dnsPolicy: None, containers: [{name: a, image: x}]}", "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
		{"priority class", "spec: {priorityClassName: nope, containers: [{name: a, image: x}]}", `pods "web" is forbidden: no PriorityClass with name nope was found`},
		{"priority", "spec: {priority: 5, containers: [{name: a, image: x}]}", `the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name`},
		{"fine", "spec: {containers: [{name: a, image: x}]}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			obj, err := kinds.New(features.Gates{}).Decode([]byte(head + tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(Options{}).Create(t0, obj)
			check(t, err, tc.want)
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got error %v, want one with %s", err, want)
	}
}

func TestValidateMeta(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*v1.Pod)
		want string
	}{
		{"name", func(p *v1.Pod) { p.Name = "A" }, `metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain`},
		{"no name", func(p *v1.Pod) { p.Name = "" }, `metadata.name: Required value: name or generateName is required`},
		{"namespace", func(p *v1.Pod) { p.Namespace = "nope" }, `namespaces "nope" not found`},
		{"label", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b c"} }, `metadata.labels: Invalid value: "b c"`},
		{"mirror without node", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} }, `must set spec.nodeName if mirror pod annotation is set`},
		{"version", func(p *v1.Pod) { p.ResourceVersion = "1" }, `resourceVersion should not be set on objects to be created`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(Options{}).Create(t0, testPod("p", tc.edit))
			check(t, err, tc.want)
		})
	}
}

func TestCreateTwice(t *testing.T) {
	s := New(Options{})
	mustCreate(t, s, testPod("p"))
	if _, err := s.Create(t0, testPod("p")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct{ manifest, want string }{
		{"apiVersion: v1\nkind: Pod\nspec: {contaners: []}", `unknown field "spec.contaners"`},
		{"apiVersion: v1\nkind: Pod\nspec: {hostNetwork: 'yes'}", `cannot unmarshal string`},
		{"apiVersion: apps/v1\nkind: Pod", `Pod is served in "v1", not in "apps/v1"`},
		{"apiVersion: networking.k8s.io/v1\nkind: Egress", `no kind "Egress" is served`},
		{"kind: Pod", "apiVersion: Required value"},
		{"a: b: c", "mapping values"},
		{"apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {cpu: 1x}}}]}", "quantit"},
	} {
		_, err := kinds.New(features.Gates{}).Decode([]byte(tc.manifest))
		check(t, err, tc.want)
	}
}

// FuzzCreate feeds manifests to everything that reads them; nothing may panic,
// and what was accepted must be accepted again.
func FuzzCreate(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: x, resources: {limits: {cpu: 1}}}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {taints: [{key: a, effect: NoSchedule}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"x"}}}],"volumes":[{"projected":{"sources":[null]}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := kinds.New(features.Gates{}).Decode(data)
		if err != nil {
			return
		}
		s := New(Options{})
		_ = kinds.New(features.Gates{}).Validate(obj)
		made, err := s.Create(t0, obj)
		if err != nil {
			return
		}
		k := s.kinds.Of(made).Kind
		if _, err := s.Apply(t0, obj); err != nil && obj.GetName() != "" {
			t.Errorf("applied again: %v", err)
		}
		bytes, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Patch(t0, k, made.GetNamespace(), made.GetName(), "application/merge-patch+json", bytes, "")
		_, _ = s.Delete(t0, k, made.GetNamespace(), made.GetName(), metav1.DeleteOptions{})
	})
}
