package podspec

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
)

// podOf is a pod with a spec, as YAML, completed.
func podOf(t *testing.T, spec string) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	SetDefaults(pod)
	return pod
}

// c is a container that nothing is wrong with, to be continued.
const c = "containers: [{name: a, image: x, "

func TestValidate(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"volume type twice", "volumes: [{name: v, nfs: {server: s, path: /x}, csi: {driver: d}}], " + c + "}]", `spec.volumes[0].csi: Forbidden: may not specify more than 1 volume type`},
		{"mount of a bad volume", "volumes: [{name: v, secret: {}}], " + c + "volumeMounts: [{name: v, mountPath: /x}]}]", `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"nfs", "volumes: [{name: v, nfs: {server: s, path: x}}], " + c + "}]", `spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path`},
		{"disk", "volumes: [{name: v, gcePersistentDisk: {pdName: '', partition: 300}}], " + c + "}]", `spec.volumes[0].persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive`},
		{"csi", "volumes: [{name: v, csi: {driver: a_b}}], " + c + "}]", `spec.volumes[0].csi.driver: Invalid value: "a_b"`},
		{"claim of its own", "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}], " + c + "}]", `spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set`},
		{"two files at one path", "volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: a, path: f}]}}, {configMap: {name: m, items: [{key: b, path: f}]}}]}}], " + c + "}]", `spec.volumes[0].projected: Invalid value: "m": conflicting duplicate paths`},
		{"device that is none", "volumes: [{name: v, emptyDir: {}}], " + c + "volumeDevices: [{name: v, devicePath: /d}]}]", "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"},
		{"propagation", "volumes: [{name: v, emptyDir: {}}], " + c + "volumeMounts: [{name: v, mountPath: /x, mountPropagation: Bidirectional}]}]", "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"},
		{"file of no emptyDir", "volumes: [{name: v, configMap: {name: m}}], " + c + "env: [{name: E, valueFrom: {fileKeyRef: {volumeName: v, path: f, key: K}}}]}]", "referenced volume must be of type emptyDir"},
		{"field of a pod", c + "env: [{name: E, valueFrom: {fieldRef: {fieldPath: status.phase}}}]}]", `spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase"`},
		{"annotation by key", c + "env: [{name: E, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['a b']\"}}}]}]", `spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "a b"`},
		{"divisor", c + "env: [{name: E, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1Ki}}}]}]", "only divisor's values 1m and 1 are supported with the cpu resource"},
		{"users of its own", "hostUsers: false, hostPID: true, " + c + "}]", "spec.HostPID: Forbidden: when `hostUsers` is false"},
		{"unmasked", c + "securityContext: {procMount: Unmasked}}]", "`hostUsers` must be false to use `Unmasked`"},
		{"sysctl of the host", "hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn, value: '1'}]}, " + c + "}]", "may not be specified when 'hostNetwork' is true"},
		{"AppArmor", c + "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ' x'}}}]", `must not be padded with whitespace`},
		{"AppArmor without a name", c + "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ''}}}]", `localhostProfile: Required value: must be set when AppArmor type is Localhost`},
		{"privileged without privileges", c + "securityContext: {privileged: true, allowPrivilegeEscalation: false}}]", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"},
		{"administrator without privileges", c + "securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false}}]", "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"},
		{"fibre channel by two names", "volumes: [{name: v, fc: {targetWWNs: [w], wwids: [i], lun: 1}}], " + c + "}]", "spec.volumes[0].fc.targetWWNs: Invalid value: [\"w\"]: targetWWNs and wwids can not be specified simultaneously"},
		{"fibre channel without a unit", "volumes: [{name: v, fc: {targetWWNs: [w]}}], " + c + "}]", "spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified"},
		{"fibre channel by the world", "volumes: [{name: v, fc: {wwids: [i]}}], " + c + "}]", ""},
		{"resource without a name of a domain", "resources: {requests: {gpu: 1}}, " + c + "}]", "spec.resources.requests[gpu]"},
		{"windows on linux", "os: {name: linux}, securityContext: {windowsOptions: {hostProcess: false}}, " + c + "}]", "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		{"linux on windows", "os: {name: windows}, " + c + "securityContext: {capabilities: {add: [X]}}}]", "spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod"},
		{"windows user", c + `securityContext: {windowsOptions: {runAsUserName: 'a\b\c'}}}]`, "runAsUserName cannot contain more than one backslash"},
		{"host process alone", c + "securityContext: {windowsOptions: {hostProcess: true}}}]", "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"},
		{"claim that isn't there", c + "resources: {claims: [{name: x}]}}]", `spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty`},
		{"half a page", c + "resources: {limits: {hugepages-2Mi: 3Mi, cpu: 1}}}]", "3Mi is not positive integer multiple of hugepages-2Mi"},
		{"sleep", "terminationGracePeriodSeconds: 5, " + c + "lifecycle: {preStop: {sleep: {seconds: 6}}}}]", "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 6"},
		{"two ways to probe", c + "livenessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}}]", "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"},
		{"value that no node has", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: [a b]}]}]}}}, " + c + "}]", "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value"},
		{"hostname twice", "hostnameOverride: h, setHostnameAsFQDN: true, " + c + "}]", "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"},
		// What looks wrong and isn't.
		{"pull secret without a name", "imagePullSecrets: [{}], " + c + "}]", ""},
		{"search path of a dot", "dnsConfig: {searches: [., _x.y.]}, " + c + "}]", ""},
		{"preferred value that no node has", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: k, operator: In, values: [a b]}]}}]}}, " + c + "}]", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errs := Validate(podOf(t, "{"+tc.spec+"}"))
			switch text := errs.ToAggregate(); {
			case tc.want == "" && text != nil:
				t.Errorf("got %v", text)
			case tc.want != "" && (text == nil || !strings.Contains(text.Error(), tc.want)):
				t.Errorf("got %v, want one with %s", text, tc.want)
			}
		})
	}
}

// TestAnnotations has those that pods are judged by.
func TestAnnotations(t *testing.T) {
	for _, tc := range []struct{ key, value, want string }{
		{v1.SeccompPodAnnotationKey, "docker/default", ""},
		{v1.SeccompPodAnnotationKey, "runtime/default", ""},
		{v1.SeccompPodAnnotationKey, "unconfined", ""},
		{v1.SeccompPodAnnotationKey, "localhost/a/b.json", ""},
		{v1.SeccompPodAnnotationKey, "localhost/../b.json", "must not contain '..'"},
		{v1.SeccompContainerAnnotationKeyPrefix + "a", "default", "must be a valid seccomp profile"},
		{"controller.kubernetes.io/pod-deletion-cost", "-5", ""},
		{"controller.kubernetes.io/pod-deletion-cost", "05", "must be a 32bit integer"},
		{v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "b", "runtime/default", `Invalid value: "b": container not found`},
		{v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "a", "mine", `invalid AppArmor profile name: "mine"`},
	} {
		pod := podOf(t, "{"+c+"}]}")
		pod.Annotations = map[string]string{tc.key: tc.value}
		err := Validate(pod).ToAggregate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: got %v, want one with %q", tc.key, tc.value, err, tc.want)
		}
	}
}

func TestValidateUpdate(t *testing.T) {
	gated := "{schedulingGates: [{name: a/b}], nodeSelector: {x: y}, " + c + "}]}"
	affine := "{schedulingGates: [{name: a/b}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}, " + c + "}]}"
	for _, tc := range []struct{ name, old, spec, sub, want string }{
		{name: "image", old: "{" + c + "}]}", spec: "{containers: [{name: a, image: z}]}"},
		{name: "grace", old: "{" + c + "}]}", spec: "{terminationGracePeriodSeconds: 5, " + c + "}]}", want: "\"TerminationGracePeriodSeconds\": 5,"},
		{name: "fewer nodes", old: gated, spec: strings.Replace(gated, "x: y", "x: y, z: w", 1)},
		{name: "fewer nodes by affinity", old: "{schedulingGates: [{name: a/b}], " + c + "}]}", spec: "{schedulingGates: [{name: a/b}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}, " + c + "}]}"},
		{name: "more terms", old: affine, spec: strings.Replace(affine, "]}]}}}, c", "]}, {matchExpressions: [{key: l, operator: Exists}]}]}}}, c", 1), want: "no additions/deletions to non-empty NodeSelectorTerms list are allowed"},
		{name: "other nodes", old: gated, spec: strings.Replace(gated, "x: y", "x: z", 1), want: "only additions to spec.nodeSelector are allowed"},
		{name: "another gate", old: gated, spec: strings.Replace(gated, "a/b", "c/d", 1), want: "only deletion is allowed, but found new scheduling gate 'c/d'"},
		{name: "nodes of a pod without gates", old: "{" + c + "}]}", spec: "{nodeSelector: {x: y}, " + c + "}]}", want: "pod updates may not change fields other than"},
		{name: "resize policy", sub: "resize", old: "{" + c + "}]}", spec: "{" + c + "resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}]}", want: "only cpu and memory resources are mutable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errs := ValidateUpdate(podOf(t, tc.spec), podOf(t, tc.old), tc.sub).ToAggregate()
			if tc.want == "" && errs != nil || tc.want != "" && (errs == nil || !strings.Contains(errs.Error(), tc.want)) {
				t.Errorf("got %v, want one with %q", errs, tc.want)
			}
		})
	}
}

// TestTransitions ends containers, and has them run again.
func TestTransitions(t *testing.T) {
	for _, tc := range []struct {
		spec string
		code int32
		ok   bool
	}{
		{"{" + c + "}]}", 0, true},
		{"{restartPolicy: Never, " + c + "}]}", 1, false},
		{"{restartPolicy: OnFailure, " + c + "}]}", 1, true},
		{"{restartPolicy: OnFailure, " + c + "}]}", 0, false},
		{"{restartPolicy: Never, " + c + "restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]}]}", 3, true},
	} {
		old := podOf(t, tc.spec)
		old.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "a", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: tc.code}}}}
		pod := old.DeepCopy()
		pod.Status.ContainerStatuses[0].State = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
		if errs := ValidateUpdate(pod, old, "status"); (len(errs) == 0) != tc.ok {
			t.Errorf("%s, code %d: got %v", tc.spec, tc.code, errs)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct{ spec, want string }{
		{"{" + c + "resources: {requests: {memory: 1500m}}}]}", `spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer`},
		{"{nodeSelector: {beta.kubernetes.io/os: linux}, " + c + "}]}", `spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`},
		{"{" + c + "env: [{name: E, value: a}, {name: E, value: b}]}]}", `spec.containers[0].env[1]: hides previous definition of "E", which may be dropped when using apply`},
		{"{" + c + "ports: [{containerPort: 80}, {containerPort: 80}]}]}", "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"},
		{"{imagePullSecrets: [{}], " + c + "}]}", `spec.imagePullSecrets[0].name: invalid empty name ""`},
	} {
		if got := Warnings(podOf(t, tc.spec)); !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: got %q", tc.spec, got)
		}
	}
	if got := Warnings(podOf(t, "{"+c+"env: [{name: E, value: a}, {name: E, value: $(E)b}]}]}")); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestDropDisabled(t *testing.T) {
	pod := podOf(t, "{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: x, path: f}}]}}], "+c+"lifecycle: {stopSignal: SIGTERM}}]}")
	DropDisabled(&pod.Spec, features.Gates{})
	if pod.Spec.Containers[0].Lifecycle != nil || pod.Spec.Volumes[0].Projected.Sources[0] != (v1.VolumeProjection{}) {
		t.Errorf("got %v", pod.Spec)
	}
}

// TestOverlaps states which files of volumes a client is warned of.
func TestOverlaps(t *testing.T) {
	file := func(path string) v1.KeyToPath { return v1.KeyToPath{Key: "k", Path: path} }
	projected := func(sources ...v1.VolumeProjection) v1.VolumeSource {
		return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}
	}
	config := v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "m"}, Items: []v1.KeyToPath{file("a/b")}}}
	token := v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "a"}}
	for _, tc := range []struct {
		name   string
		source v1.VolumeSource
		want   string
	}{
		{"the same", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", Items: []v1.KeyToPath{file("a"), file("a/")}}}, `volume "v" (Secret "s"): overlapping paths: "a" with "a"`},
		{"beside", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{Items: []v1.KeyToPath{file("a"), file("ab")}}}, ""},
		{"below", projected(config, token), `volume "v" (Projected): overlapping paths: "a" (ServiceAccountToken) with "a/b" (ConfigMap "m")`},
		{"nothing", projected(v1.VolumeProjection{}), `volume "v" (Projected) has no sources provided`},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "v", VolumeSource: tc.source}}}}
		if got := strings.Join(Warnings(pod), "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
