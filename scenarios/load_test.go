package scenarios

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/value"
)

func TestLoadEverything(t *testing.T) {
	list, err := Load("testdata/full.yaml", LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("seed", s.Spec.Seed, 7)
	check("names", s.NodeNames(), "[worker-0 worker-1 worker-2 control]")
	check("selection", s.SelectNodes(value.Nodes{"control", "worker-[0]", "*-1"}), "[worker-1 control]")
	check("restart", *s.Spec.KubeletRestart, "{5s false}")
	check("api latency", *s.Spec.API.Latency, "{5ms 20ms}")
	check("api fault", s.Spec.API.Faults[0].Error.Code, 503)
	check("capacity said", s.Spec.Nodes[0].Capacity.Memory(), "8Gi")
	check("capacity default", s.Spec.Nodes[1].Capacity.Pods(), "110")
	check("kubelet", s.Spec.Nodes[0].Kubelet.NodeStatusUpdateFrequency.Duration, 10*time.Second)
	check("kubelet pointer", *s.Spec.Nodes[0].Kubelet.SerializeImagePulls, false)
	check("static", s.Spec.Nodes[0].StaticPods[1].File+": "+string(s.Spec.Nodes[0].StaticPods[1].Manifest.Content), "broken.yaml: this is: [no manifest")
	check("exits", s.Spec.Programs[0].Exits, "[1 1 0]")
	check("cpu", s.Spec.Programs[0].CPU.Value, "250m")
	check("logs", s.Spec.Programs[0].Logs, "[{hello 0s 0s 0 } {tick 1s 5s 3 stderr}]")
	check("signal", s.Spec.Programs[1].Attempts[0].Signal, 11)
	check("objects", len(s.Spec.Timeline[1].Does.(*action.Apply).Objects), 4)
	check("position in file", s.Spec.Timeline[0].Does.(*action.Apply).Objects[1].Pos, "testdata/pods.yaml:10:1")
	check("namespace", s.Spec.Timeline[0].Does.(*action.Apply).Objects[0].Object.(*v1.Pod).Namespace, "default")
	check("secret", string(s.Spec.Timeline[2].Does.(*action.Apply).Objects[2].Object.(*v1.Secret).Data["a"]), "a")
	check("template", s.Spec.Timeline[4].Does.(*action.Template).Manifest.Objects[0].Object.(*v1.Pod).Name, "web")
	check("patch", string(s.Spec.Timeline[6].Does.(*action.Patch).Patch), `[{"op":"replace","path":"/status/phase","value":"Failed"}]`)
	check("patch type", s.Spec.Timeline[5].Does.(*action.Patch).Type+s.Spec.Timeline[5].Does.(*action.Patch).Namespace, "merge")
	check("grace", *s.Spec.Timeline[7].Does.(*action.Delete).GracePeriodSeconds, 0)
	check("fault's pod", s.Spec.Timeline[8].Does.(*action.Fault).CRI.Pod, "default/web-0")
	check("fault's error", s.Spec.Timeline[8].Does.(*action.Fault).CRI.Error.Code, "Unavailable")
	check("reboot", s.Spec.Timeline[13].Does.(*action.Reboot).Down, 30*time.Second)
	check("kind", s.Spec.Timeline[13].Kind(), "reboot")
	check("position", s.Spec.Timeline[13].Pos, "testdata/full.yaml:72:5")
	check("expectation", s.Spec.Expect[5].Compiled.Span, 10*time.Second)
	check("until end", s.Spec.Expect[4].Compiled.Until, expect.End)
	var bad []int
	for i, a := range s.Spec.Timeline {
		if a.Pos.Line == 0 || a.Kind() == "" {
			bad = append(bad, i)
		}
	}
	check("actions without position or kind", bad, "[]")
}

// head is what bad documents begin with; their spec begins on line 5.
const head = "apiVersion: drydock.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec:\n"

const oneNode = "  nodes: [{name: worker}]\n"

func podDoc(spec string) string {
	return oneNode + "  timeline:\n  - at: 1s\n    apply:\n      manifest:\n        apiVersion: v1\n        kind: Pod\n        metadata: {name: web}\n        spec:\n" + spec
}

func TestBadInput(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"unknown field", head + "  nodes:\n  - name: worker\n    kubelet:\n      evictionHrd: {memory.available: 5}\n", `f.yaml:8:7: spec.nodes[0].kubelet.evictionHrd: unknown field "evictionHrd" (did you mean "evictionHard"?)`},
		{"unknown field without likeness", head + oneNode + "  zebra: 1\n", `f.yaml:6:3: spec.zebra: unknown field "zebra"`},
		{"wrong case", head + oneNode + "  Expect: []\n", `f.yaml:6:3: spec.Expect: unknown field "Expect" (did you mean "expect"?)`},
		{"wrong type", head + "  nodes: worker\n", `f.yaml:5:10: spec.nodes: want a list, got the text "worker"`},
		{"number for text", head + "  nodes: [{name: 5}]\n", `f.yaml:5:18: spec.nodes[0].name: want a text, got the number 5: put it in quotes`},
		{"text for number", head + "  nodes: [{name: w, count: many}]\n", `f.yaml:5:28: spec.nodes[0].count: want a whole number, got the text "many"`},
		{"quantity", head + "  nodes: [{name: w, capacity: {memory: 8Gig}}]\n", `f.yaml:5:40: spec.nodes[0].capacity.memory: "8Gig" is no quantity such as 500m or 1Gi`},
		{"huge quantity", head + "  nodes: [{name: w, capacity: {memory: 1e999999999}}]\n", `f.yaml:5:40: spec.nodes[0].capacity.memory: "1e999999999" is no quantity such as 500m or 1Gi`},
		{"resource", head + "  nodes: [{name: w, capacity: {memry: 8Gi}}]\n", `f.yaml:5:39: spec.nodes[0].capacity["memry"]: there is no resource "memry" (did you mean "memory"?)`},
		{"duration", head + oneNode + "  duration: 10 minutes\n", `f.yaml:6:13: spec.duration: "10 minutes" is no time such as 10s or 1m30s`},
		{"duration without unit", head + oneNode + "  duration: 10\n", `f.yaml:6:13: spec.duration: want a time such as 10s or 1m30s, got the number 10: which unit?`},
		{"negative time", head + oneNode + "  timeline: [{at: -5s, stopKubelet: {}}]\n", `f.yaml:6:19: spec.timeline[0].at: -5s is negative`},
		{"range", head + oneNode + "  images: [{name: a, pull: {takes: 4s..2s}}]\n", `f.yaml:6:36: spec.images[0].pull.takes: 4s..2s: the range ends before it begins`},
		{"missing file", head + oneNode + "  timeline: [{at: 1s, apply: {file: nope.yaml}}]\n", `f.yaml:6:37: spec.timeline[0].apply.file: cannot read the file: open nope.yaml: no such file or directory`},
		{"unknown node", head + "  nodes: [{name: worker, count: 2}]\n  timeline: [{at: 1s, reboot: {node: worker-2}}]\n", `f.yaml:6:38: spec.timeline[0].reboot.node: there is no node "worker-2" (did you mean "worker-0"?)`},
		{"unknown node in a list", head + "  nodes: [{name: worker, count: 2}]\n  timeline: [{at: 1s, fault: {node: [worker-0, nod], partition: {}}}]\n", `f.yaml:6:48: spec.timeline[0].fault.node[1]: there is no node "nod"`},
		{"which node", head + "  nodes: [{name: worker, count: 2}]\n  timeline:\n  - at: 1s\n    reboot: {down: 1s}\n", `f.yaml:8:5: spec.timeline[0].reboot.node: must be set, as there are 2 nodes`},
		{"double node names", head + "  nodes: [{name: a, count: 2}, {name: a-1}]\n", `f.yaml:5:39: spec.nodes[1].name: there is a node "a-1" in spec.nodes[0] too`},
		{"credential provider's name", head + "  nodes: [{name: a, credentialProviders: [{name: a b, matchImages: [x]}]}]\n", `f.yaml:5:50: spec.nodes[0].credentialProviders[0].name: Invalid value: "a b": provider name cannot contain spaces`},
		{"credential provider twice", head + "  nodes: [{name: a, credentialProviders: [{name: p, matchImages: [x]}, {name: p, matchImages: [x]}]}]\n", `f.yaml:5:79: spec.nodes[0].credentialProviders[1].name: p is there twice`},
		{"credential provider's images", head + "  nodes: [{name: a, credentialProviders: [{name: p, matchImages: [x, \"a:b\"]}]}]\n", `f.yaml:5:53: spec.nodes[0].credentialProviders[0].matchImages: Invalid value: "a:b": match image is invalid: parse "https://a:b": invalid port ":b" after host`},
		{"credential provider's images unsaid", head + "  nodes: [{name: a, credentialProviders: [{name: p}]}]\n", `f.yaml:5:43: spec.nodes[0].credentialProviders[0].matchImages: must be set`},
		{"credential provider's tokens", head + "  nodes: [{name: a, credentialProviders: [{name: p, matchImages: [x], tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: true, cacheType: Pod}}]}]\n", `f.yaml:5:161: spec.nodes[0].credentialProviders[0].tokenAttributes.cacheType: Unsupported value: "Pod": supported values: "ServiceAccount", "Token"`},
		{"credential provider's tokens without the gate", head + "  nodes: [{name: a, kubelet: {featureGates: {KubeletServiceAccountTokenForCredentialProviders: false}}, credentialProviders: [{name: p, matchImages: [x], tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: true, cacheType: Token}}]}]\n", `f.yaml:5:155: spec.nodes[0].credentialProviders[0].tokenAttributes: Forbidden: tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled`},
		{"credential provider's cache", head + "  nodes: [{name: a, credentialProviders: [{name: p, matchImages: [x], cacheDuration: -1s}]}]\n", `f.yaml:5:86: spec.nodes[0].credentialProviders[0].cacheDuration: -1s is negative`},
		{"double key", head + oneNode + "  seed: 1\n  seed: 2\n", `f.yaml:7:3: spec.seed: "seed" is there twice, first on line 6`},
		{"bad YAML", "a: b\n  c: d\n", `f.yaml:2:1: bad YAML: mapping values are not allowed in this context`},
		{"empty file", "# nothing\n", `f.yaml: there is no scenario in this file`},
		{"other document", "apiVersion: v1\nkind: Pod\n", `f.yaml:2:7: kind: must be Scenario, not "Pod"`},
		{"other version", "apiVersion: drydock.dev/v2\nkind: Scenario\n", `f.yaml:1:13: apiVersion: must be drydock.dev/v1alpha1, not "drydock.dev/v2"`},
		{"no header", "spec: {}\n", `f.yaml:1:1: a scenario begins with apiVersion: drydock.dev/v1alpha1 and kind: Scenario`},
		{"missing name", "apiVersion: drydock.dev/v1alpha1\nkind: Scenario\nmetadata: {}\nspec: {nodes: [{name: a}]}\n", `f.yaml:3:11: metadata.name: must be set`},
		{"bad CEL", head + oneNode + "  expect:\n  - at: 10s\n    that: 'pod(\"web\").status.fase == \"Running\"'\n", `f.yaml:8:29: spec.expect[0].that: v1.PodStatus has no field "fase" (did you mean "phase"?)`},
		{"bad CEL in a block", head + oneNode + "  expect:\n  - at: 10s\n    that: |\n      pods().size() > 0 &&\n        nods().size() > 0\n", `f.yaml:10:13: spec.expect[0].that: there is no "nods" (did you mean "nodes"?)`},
		{"CEL syntax", head + oneNode + "  expect: [{always: 'pods(.size()'}]\n", `f.yaml:6:34: spec.expect[0].always: syntax error: missing ')' at '<EOF>'`},
		{"no time form", head + oneNode + "  expect: [{that: 'true'}]\n", `f.yaml:6:12: spec.expect[0]: says not when: it needs at, by, always, never or for`},
		{"two time forms", head + oneNode + "  expect: [{at: 1s, by: 2s, that: 'true'}]\n", `f.yaml:6:25: spec.expect[0].by: at and by do not go together`},
		{"no expression", head + oneNode + "  expect: [{at: 1s}]\n", `f.yaml:6:12: spec.expect[0].that: must be set`},
		{"expectation after the end", head + oneNode + "  duration: 1m\n  expect: [{at: 2m, that: 'true'}]\n", `f.yaml:7:17: spec.expect[0].at: 2m0s is after the scenario's end: its duration is 1m0s`},
		{"by before from", head + oneNode + "  expect: [{by: 1s, from: 2s, that: 'true'}]\n", `f.yaml:6:17: spec.expect[0].by: 1s is too early: it is looked at from 2s on`},
		{"from with at", head + oneNode + "  expect: [{at: 1s, from: 2s, that: 'true'}]\n", `f.yaml:6:27: spec.expect[0].from: goes with by, always, never and for only`},
		{"criCalls", head + oneNode + "  expect: [{by: 1s, that: 'criCalls().size() == 0'}]\n", `f.yaml:6:28: spec.expect[0].that: criCalls() can be used with at only, not with by`},
		{"two actions", head + oneNode + "  timeline:\n  - at: 1s\n    stopKubelet: {}\n    reboot: {}\n", `f.yaml:8:5: spec.timeline[0].stopKubelet: an action is one thing, but this is reboot and stopKubelet`},
		{"no action", head + oneNode + "  timeline:\n  - at: 1s\n", `f.yaml:7:5: spec.timeline[0]: says nothing that happens: besides at it needs apply, delete, fault or another action`},
		{"action without time", head + oneNode + "  timeline:\n  - reboot: {}\n", `f.yaml:7:5: spec.timeline[0].at: must be set`},
		{"action after the end", head + oneNode + "  timeline: [{at: 11m, reboot: {}}]\n", `f.yaml:6:19: spec.timeline[0].at: 11m0s is after the scenario's end: its duration is 10m0s`},
		{"misspelt action", head + oneNode + "  timeline: [{at: 1m, restartKublet: {}}]\n", `f.yaml:6:23: spec.timeline[0].restartKublet: unknown field "restartKublet" (did you mean "restartKubelet"?)`},
		{"CRI method", head + oneNode + "  timeline: [{at: 1m, fault: {cri: {method: StopContaner, hang: true}}}]\n", `f.yaml:6:45: spec.timeline[0].fault.cri.method: there is no CRI method "StopContaner" (did you mean "StopContainer"?)`},
		{"latency's method", head + "  nodes: [{name: a, runtime: {latency: {RunSandbox: 1s}}}]\n", `f.yaml:5:53: spec.nodes[0].runtime.latency["RunSandbox"]: there is no CRI method "RunSandbox" (did you mean "RunPodSandbox"?)`},
		{"gRPC code", head + oneNode + "  timeline: [{at: 1m, fault: {cri: {error: Unavailabel}}}]\n", `f.yaml:6:44: spec.timeline[0].fault.cri.error: "Unavailabel" is none of Canceled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated (did you mean "Unavailable"?)`},
		{"fault without effect", head + oneNode + "  timeline: [{at: 1m, fault: {cri: {method: Status}}}]\n", `f.yaml:6:31: spec.timeline[0].fault.cri: has no effect: needs error, latency or hang`},
		{"HTTP code", head + oneNode + "  api: {faults: [{error: 200}]}\n", `f.yaml:6:26: spec.api.faults[0].error: the code 200 is not within 400 and 599`},
		{"short latency", head + oneNode + "  api: {latency: 10us}\n", `f.yaml:6:18: spec.api.latency: 10µs is less than 1ms`},
		{"manifest's field", podDoc("          containers:\n          - {name: a, imgae: b}\n"), `f.yaml:15:23: spec.timeline[0].apply.manifest.spec.containers[0].imgae: unknown field "imgae" (did you mean "image"?)`},
		{"manifest's type", podDoc("          containers:\n          - {name: a, image: b, ports: [{containerPort: http}]}\n"), `f.yaml:15:57: spec.timeline[0].apply.manifest.spec.containers[0].ports[0].containerPort: want a whole number, got the text "http"`},
		{"manifest's quantity", podDoc("          containers:\n          - {name: a, image: b, resources: {limits: {memory: lots}}}\n"), `f.yaml:15:62: spec.timeline[0].apply.manifest.spec.containers[0].resources.limits.memory: "lots" is no quantity such as 500m or 1Gi`},
		{"refused by the API", podDoc("          containers:\n          - {name: a}\n"), `f.yaml:15:13: spec.timeline[0].apply.manifest.spec.containers[0].image: Required value`},
		{"kind", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: apps/v1, kind: Deploymnt}}}]\n", `f.yaml:6:69: spec.timeline[0].apply.manifest.kind: kind "Deploymnt" is none of APIService, CSIDriver, CSINode, CSIStorageCapacity, CertificateSigningRequest, ClusterRole, ClusterRoleBinding, ClusterTrustBundle, ConfigMap, CronJob, CustomResourceDefinition, DaemonSet, Deployment, DeviceClass, EndpointSlice, Endpoints, FlowSchema, HorizontalPodAutoscaler, IPAddress, Ingress, IngressClass, Job, LimitRange, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, Namespace, NetworkPolicy, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget, PodTemplate, PriorityClass, PriorityLevelConfiguration, ReplicaSet, ReplicationController, ResourceClaim, ResourceClaimTemplate, ResourceQuota, ResourceSlice, Role, RoleBinding, RuntimeClass, Secret, Service, ServiceAccount, ServiceCIDR, StatefulSet, StorageClass, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration, VolumeAttachment, VolumeAttributesClass (did you mean "Deployment"?)`},
		{"controller", head + oneNode + "  controlPlane: {disable: [kube-scheduler, job-controler]}\n", `f.yaml:6:44: spec.controlPlane.disable[1]: there is no controller "job-controler" (did you mean "job-controller"?)`},
		{"negative burst", head + oneNode + "  controlPlane: {scheduler: {clientConnection: {burst: -1}}}\n", `f.yaml:6:56: spec.controlPlane.scheduler.clientConnection.burst: -1 is negative`},
		{"scale without replicas", head + oneNode + "  timeline: [{at: 1s, scale: {name: web}}]\n", `f.yaml:6:30: spec.timeline[0].scale.replicas: must be set`},
		{"scale's replicas", head + oneNode + "  timeline: [{at: 1s, scale: {name: web, replicas: -2}}]\n", `f.yaml:6:52: spec.timeline[0].scale.replicas: -2 is not within 0 and 500000`},
		{"scaled kind", head + oneNode + "  timeline: [{at: 1s, scale: {kind: DaemonSet, name: web, replicas: 2}}]\n", `f.yaml:6:37: spec.timeline[0].scale.kind: "DaemonSet" is none of Deployment, ReplicaSet, StatefulSet`},
		{"paused kind", head + oneNode + "  timeline: [{at: 1s, rollout: {command: pause, kind: DaemonSet, name: web}}]\n", `f.yaml:6:42: spec.timeline[0].rollout.command: a DaemonSet cannot be paused, only a Deployment can`},
		{"revision of a restart", head + oneNode + "  timeline: [{at: 1s, rollout: {command: restart, toRevision: 2, name: web}}]\n", `f.yaml:6:63: spec.timeline[0].rollout.toRevision: goes with undo only`},
		{"drained node", head + oneNode + "  timeline: [{at: 1s, drain: {node: b}}]\n", `f.yaml:6:37: spec.timeline[0].drain.node: there is no node "b"`},
		{"cordoned node", head + "  nodes: [{name: a, count: 2}]\n  timeline: [{at: 1s, cordon: {}}]\n", `f.yaml:6:23: spec.timeline[0].cordon.node: must be set, as there are 2 nodes`},
		{"spread too far", head + oneNode + "  timeline: [{at: 9m, restartKubelet: {over: 2m}}]\n", `f.yaml:6:46: spec.timeline[0].restartKubelet.over: 2m0s from 9m0s on is after the scenario's end: its duration is 10m0s`},
		{"component", head + oneNode + "  timeline: [{at: 1s, fault: {component: kube-schedler, partition: {}}}]\n", `f.yaml:6:42: spec.timeline[0].fault.component: there is no component "kube-schedler" (did you mean "kube-scheduler"?)`},
		{"component's runtime", head + oneNode + "  timeline: [{at: 1s, fault: {component: kube-scheduler, cri: {hang: true}}}]\n", `f.yaml:6:42: spec.timeline[0].fault.component: goes with api and partition only`},
		{"stopped component", head + oneNode + "  timeline: [{at: 1s, stopComponent: {component: etcd}}]\n", `f.yaml:6:50: spec.timeline[0].stopComponent.component: "etcd" is none of kube-scheduler, kube-controller-manager`},
		{"kind's version", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v2, kind: Pod}}}]\n", `f.yaml:6:54: spec.timeline[0].apply.manifest.apiVersion: the apiVersion of a Pod is v1, not "v2"`},
		{"list's version", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v2, kind: List, items: []}}}]\n", `f.yaml:6:54: spec.timeline[0].apply.manifest.apiVersion: the apiVersion of a List is v1, not "v2"`},
		{"list's field", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v1, kind: List, itms: []}}}]\n", `f.yaml:6:70: spec.timeline[0].apply.manifest.itms: unknown field "itms" (did you mean "items"?)`},
		{"list's item", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, spc: {}}]}}}]\n", `f.yaml:6:106: spec.timeline[0].apply.manifest.items[0].spc: unknown field "spc" (did you mean "spec"?)`},
		{"list's items", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v1, kind: List, items: {kind: Pod}}}}]\n", `f.yaml:6:77: spec.timeline[0].apply.manifest.items: want a list, got a mapping`},
		{"text as manifest", head + oneNode + "  timeline: [{at: 1s, apply: {manifest: hello}}]\n", `f.yaml:6:41: spec.timeline[0].apply.manifest: want a Kubernetes object or a list of them, got a text`},
		{"field in a file", head + oneNode + "  timeline: [{at: 1s, apply: {file: bad.yaml}}]\n", `bad.yaml:3:12: metadata.nam: unknown field "nam" (did you mean "name"?)`},
		{"refused in a file", head + oneNode + "  timeline: [{at: 1s, apply: {file: refused.yaml}}]\n", `refused.yaml:7:12: spec.containers[0].image: Required value`},
		{"template", head + oneNode + "  timeline: [{at: 1s, template: {replicas: 1, perNode: 1, manifest: {apiVersion: v1, kind: Pod}}}]\n", `f.yaml:6:23: spec.timeline[0].template: needs exactly one of replicas and perNode`},
		{"template's kind", head + oneNode + "  timeline: [{at: 1s, template: {replicas: 1, manifest: {apiVersion: v1, kind: Secret}}}]\n", `f.yaml:6:80: spec.timeline[0].template.manifest.kind: a template is a Pod, not a Secret`},
		{"exit without end", head + oneNode + "  programs: [{match: {}, exit: 1}]\n", `f.yaml:6:32: spec.programs[0].exit: without runFor the container never exits by itself`},
		{"exit code", head + oneNode + "  programs: [{match: {}, runFor: 1s, exit: 256}]\n", `f.yaml:6:44: spec.programs[0].exit: the exit code 256 is not within 0 and 255`},
		{"signal", head + oneNode + "  programs: [{match: {}, runFor: 1s, signal: SIGKIL}]\n", `f.yaml:6:46: spec.programs[0].signal: "SIGKIL" is no signal such as SIGKILL (did you mean "SIGKILL"?)`},
		{"kubelet restart", head + oneNode + "  kubeletRestart: sometimes\n", `f.yaml:6:19: spec.kubeletRestart: want never or {after: 10s}, got the text "sometimes"`},
		{"kubelet refused", head + "  nodes:\n  - name: a\n    kubelet: {maxPods: -1}\n", `f.yaml:7:24: spec.nodes[0].kubelet.maxPods: Invalid value: -1: must not be negative`},
		{"alias bomb", head + "  a: &a [x,x,x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n  f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n  g: [*f,*f,*f,*f]\n", `f.yaml:1:1: too large or too deep once its aliases are expanded`},
		{"alias of itself", head + "  a: &a [*a]\n", `f.yaml:1:1: too large or too deep once its aliases are expanded`},
		{"same name", head + oneNode + "---\n" + head + oneNode, `f.yaml:9:18: metadata.name: the scenario on line 1 is called "x" too`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := tt.doc
			if !strings.HasPrefix(doc, "apiVersion") && strings.HasPrefix(doc, " ") {
				doc = head + doc
			}
			_, err := Parse("f.yaml", []byte(doc), testOptions())
			if err == nil {
				t.Fatal("it loads")
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// testOptions has a tiny idea of what the API and the kubelet refuse.
func testOptions() LoadOptions {
	return LoadOptions{
		ReadFile: func(name string) ([]byte, error) {
			switch name {
			case "bad.yaml":
				return []byte("apiVersion: v1\nkind: Pod\nmetadata: {nam: x}\n"), nil
			case "refused.yaml":
				return []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - name: a\n    image: \"\"\n"), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("no such file or directory")}
		},
		ValidateObject: func(o runtime.Object) (errs field.ErrorList) {
			p, ok := o.(*v1.Pod)
			if !ok {
				return nil
			}
			for i, c := range p.Spec.Containers {
				if c.Image == "" {
					errs = append(errs, field.Required(field.NewPath("spec", "containers").Index(i).Child("image"), ""))
				}
			}
			return errs
		},
		ValidateKubelet: func(c *kubeletconfig.KubeletConfiguration) (errs field.ErrorList) {
			if c.MaxPods < 0 {
				errs = append(errs, field.Invalid(field.NewPath("maxPods"), c.MaxPods, "must not be negative"))
			}
			return errs
		},
	}
}

func TestErrorsAreCollectedAndSorted(t *testing.T) {
	_, err := Parse("f.yaml", []byte(head+"  nodes: [{name: worker}]\n  expect: [{at: 1s, that: 'x'}]\n  zebra: 1\n  seed: a\n"), LoadOptions{})
	want := "f.yaml:6:28: spec.expect[0].that: there is no \"x\"\nf.yaml:7:3: spec.zebra: unknown field \"zebra\"\nf.yaml:8:9: spec.seed: want a whole number of at least 0, got the text \"a\""
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSet(t *testing.T) {
	doc, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ set, want string }{
		{`spec.nodes[*].kubelet.evictionHard["memory.available"]=600Mi`, ""},
		{`spec.nodes[1].kubelet.maxPods=7`, ""},
		{`spec.seed=9`, ""},
		{`spec.nodes[0].labels['zone']=5`, ""},
		{`spec.timeline[0].at=2s`, ""},
		{`spec.nodes[0].capacity={cpu: 2}`, ""},
		{`spec.nodes[0].kubelet.evictionHrd=5`, `--set 'spec.nodes[0].kubelet.evictionHrd=5': spec.nodes[0].kubelet.evictionHrd: unknown field "evictionHrd" (did you mean "evictionHard"?)`},
		{`spec.nodes[9].count=5`, `--set 'spec.nodes[9].count=5': spec.nodes has 2 elements`},
		{`spec.nods[0].count=5`, `--set 'spec.nods[0].count=5': there is no spec.nods (did you mean "nodes"?)`},
		{`spec.nodes.count=5`, `--set 'spec.nodes.count=5': spec.nodes is a list, not a mapping`},
		{`spec.seed.x=5`, `--set 'spec.seed.x=5': spec.seed is the number 7, not a mapping`},
		{`spec.seed`, `--set 'spec.seed': want PATH=VALUE, but there is no =`},
		{`=5`, `--set '=5': want PATH=VALUE, but there is no path`},
		{`spec..seed=5`, `--set 'spec..seed=5': "" is no field's name (other keys are written ["key"])`},
		{`spec.nodes[x].count=5`, `--set 'spec.nodes[x].count=5': [x] is none of [0], [*] and ["key"]`},
		{`spec.nodes[0.count=5`, `--set 'spec.nodes[0.count=5': "[0.count=5" has no ]`},
		{`spec.nodes[0]["a=5`, `--set 'spec.nodes[0]["a=5': "[\"a=5" does not end with "]`},
		{`spec.seed=[`, `--set 'spec.seed=[': the value is bad YAML: line 1: did not find expected node content`},
		{`spec.duration=soon`, `--set 'spec.duration=soon': spec.duration: "soon" is no time such as 10s or 1m30s`},
		{`spec.timeline[7].delete.name=`, `--set 'spec.timeline[7].delete.name=': spec.timeline[7].delete.name: must be set`},
	} {
		list, err := Parse("testdata/full.yaml", doc, LoadOptions{Set: []string{tt.set}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.set, got, tt.want)
			continue
		}
		if err != nil {
			continue
		}
		n := list[0].Spec.Nodes
		switch tt.set {
		case `spec.nodes[*].kubelet.evictionHard["memory.available"]=600Mi`:
			if n[0].Kubelet.EvictionHard["memory.available"] != "600Mi" || n[1].Kubelet.EvictionHard["memory.available"] != "600Mi" {
				t.Errorf("%s: got %v and %v", tt.set, n[0].Kubelet.EvictionHard, n[1].Kubelet.EvictionHard)
			}
		case `spec.nodes[1].kubelet.maxPods=7`:
			if n[1].Kubelet.MaxPods != 7 || n[0].Kubelet.MaxPods != 50 || n[1].Capacity.Pods().Value() != 7 {
				t.Errorf("%s: got %d", tt.set, n[1].Kubelet.MaxPods)
			}
		case `spec.seed=9`:
			if list[0].Spec.Seed != 9 {
				t.Errorf("%s: got %d", tt.set, list[0].Spec.Seed)
			}
		case `spec.nodes[0].labels['zone']=5`:
			if n[0].Labels["zone"] != "5" {
				t.Errorf("%s: got %v", tt.set, n[0].Labels)
			}
		}
	}
}

// FuzzParse looks for panics, and for errors that are not one line each.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"testdata", "library"} {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".yaml") {
				if b, err := os.ReadFile(path); err == nil {
					f.Add(b)
				}
			}
			return nil
		})
	}
	f.Add([]byte(starter))
	f.Add([]byte(head + "  a: &a [*a]\n  <<: *a\n"))
	f.Add([]byte(head + "  ? [a]\n  : b\n"))
	c, err := expect.NewCompiler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := testOptions()
		opts.Compiler = c
		_, err := Parse("f.yaml", data, opts)
		if err == nil {
			return
		}
		list, ok := err.(LoadErrors)
		if !ok || len(list) == 0 {
			t.Fatalf("not LoadErrors: %v", err)
		}
		for _, e := range list {
			if strings.ContainsAny(e.Error(), "\n\r") || e.Message == "" {
				t.Errorf("not one line: %q", e.Error())
			}
		}
	})
}

// FuzzSet looks for panics in overrides.
func FuzzSet(f *testing.F) {
	for _, s := range []string{`spec.nodes[*].kubelet.evictionHard["memory.available"]=500Mi`, `a=b`, `spec[0]=1`, `spec.nodes[0]['x`, `=`} {
		f.Add(s)
	}
	c, err := expect.NewCompiler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, set string) {
		_, err := Parse("f.yaml", []byte(head+oneNode), LoadOptions{Set: []string{set}, Compiler: c})
		if err != nil && strings.ContainsAny(err.(LoadErrors)[0].Error(), "\n\r") {
			t.Errorf("not one line: %q", err)
		}
	})
}
