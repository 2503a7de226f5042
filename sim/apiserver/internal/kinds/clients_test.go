package kinds

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// TestClientsKindsRefused holds what is refused of kinds that only clients write.
func TestClientsKindsRefused(t *testing.T) {
	const (
		networking = "apiVersion: networking.k8s.io/v1\n"
		rbac       = "apiVersion: rbac.authorization.k8s.io/v1\n"
		flow       = "apiVersion: flowcontrol.apiserver.k8s.io/v1\n"
		meta       = "metadata: {name: x}\n"
		backend    = "backend: {service: {name: s, port: {number: 80}}}"
		binding    = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n" + meta + "spec: {policyName: p, "
	)
	path := func(p string) string {
		return networking + "kind: Ingress\n" + meta + "spec: {rules: [{http: {paths: [{" + p + "}]}}]}"
	}
	for _, tc := range []struct{ manifest, want string }{
		{path("pathType: Prefix, path: /a, " + backend), ""},
		{path("pathType: Exact, path: /a//b, " + backend), "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b\": must not contain '//'"},
		{path("pathType: Exact, path: /a/.., " + backend), "cannot end with '/..'"},
		{path("pathType: ImplementationSpecific, path: '', " + backend), ""},
		{path("pathType: Exact, path: /, backend: {service: {name: s, port: {number: 80, name: a}}}"), "cannot set both port name & port number"},
		{path("pathType: Exact, path: /, backend: {resource: {kind: a/b, name: ''}}"), "backend.resource.name: Required value"},
		{networking + "kind: Ingress\n" + meta + "spec: {}", "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
		{networking + "kind: Ingress\nmetadata: {name: x, annotations: {kubernetes.io/ingress.class: a}}\nspec: {ingressClassName: b, defaultBackend: {service: {name: s, port: {number: 80}}}}", "annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match"},
		{networking + "kind: IngressClass\n" + meta + "spec: {controller: x.io/y, parameters: {kind: K, name: p}}", ""},
		{networking + "kind: IngressClass\n" + meta + "spec: {controller: x.io/y, parameters: {kind: K, name: p, scope: Namespace}}", "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"},
		{networking + "kind: IngressClass\n" + meta + "spec: {controller: x}", "must be a domain-prefixed path"},
		{networking + "kind: NetworkPolicy\n" + meta + "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.1/8}}]}]}", "spec.ingress[0].from[0].ipBlock.cidr"},
		{networking + "kind: NetworkPolicy\n" + meta + "spec: {podSelector: {}, egress: [{ports: [{port: http, endPort: 3}]}]}", "may not be specified when `port` is non-numeric"},
		{networking + "kind: NetworkPolicy\n" + meta + "spec: {podSelector: {}, policyTypes: [Ingress, Egress]}", ""},
		{networking + "kind: NetworkPolicy\n" + meta + "spec: {podSelector: {}, policyTypes: [Ingress, Egress, Ingress]}", "may not specify more than two policyTypes"},
		{networking + "kind: NetworkPolicy\n" + meta + "spec: {podSelector: {}, policyTypes: [Both]}", "spec.policyTypes[0]: Unsupported value: \"Both\""},
		{networking + "kind: IPAddress\nmetadata: {name: 10.0.0.1}\nspec: {parentRef: {resource: services, name: a}}", ""},
		{networking + "kind: IPAddress\nmetadata: {name: 10.0.0.01}\nspec: {parentRef: {resource: services, name: a}}", "metadata.name: Invalid value: \"10.0.0.01\""},
		{networking + "kind: ServiceCIDR\n" + meta + "spec: {cidrs: [10.0.0.0/24, 10.1.0.0/24]}", "may specify no more than one IP for each IP family"},
		{rbac + "kind: ClusterRole\nmetadata: {name: 'system:a'}\nrules: [{nonResourceURLs: [/x], resources: [a], verbs: [get]}]", "rules cannot apply to both regular resources and non-resource URLs"},
		{rbac + "kind: ClusterRole\n" + meta + "aggregationRule: {}", "at least one clusterRoleSelector required"},
		{rbac + "kind: RoleBinding\n" + meta + "roleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: a}]", ""},
		{rbac + "kind: ClusterRoleBinding\n" + meta + "roleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: a}]", "[roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\", subjects[0].namespace: Required value]"},
		{flow + "kind: FlowSchema\n" + meta + "spec: {matchingPrecedence: 1, priorityLevelConfiguration: {name: a}}", "only the schema named 'exempt' may have matchingPrecedence 1"},
		{flow + "kind: FlowSchema\n" + meta + "spec: {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: User}], nonResourceRules: [{verbs: ['*'], nonResourceURLs: [a]}]}]}", "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"},
		{flow + "kind: FlowSchema\nmetadata: {name: exempt}\nspec: {matchingPrecedence: 1, priorityLevelConfiguration: {name: exempt}}", "spec of 'exempt' must equal the fixed value"},
		{flow + "kind: PriorityLevelConfiguration\n" + meta + "spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}", ""},
		{flow + "kind: PriorityLevelConfiguration\n" + meta + "spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {handSize: 65}}}}", "should not be greater than queues (64)"},
		{flow + "kind: PriorityLevelConfiguration\n" + meta + "spec: {type: Exempt}", "must be 'Exempt' if and only if `name` is 'exempt'"},
		{binding + "validationActions: [Deny, Audit]}", ""},
		{binding + "validationActions: [Warn, Audit]}", ""},
		{binding + "validationActions: [Deny, Warn]}", "must not contain both Deny and Warn"},
		{binding + "validationActions: [Audit, Audit]}", "spec.validationActions[1]: Duplicate value: \"Audit\""},
		{binding + "validationActions: []}", "at least one validation action is required"},
	} {
		obj, err := New(features.Gates{}).Decode([]byte(tc.manifest))
		if err != nil {
			t.Fatalf("%s: %v", tc.manifest, err)
		}
		wantError(t, New(features.Gates{}).Validate(obj), tc.want)
	}
}

// TestSubjectColumns: wide tables have who is bound, by kind.
func TestSubjectColumns(t *testing.T) {
	in := New(features.Gates{}).Find(RoleBinding)
	b := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{
		{Kind: "User", Name: "u"}, {Kind: "Group", Name: "g"}, {Kind: "User", Name: "v"}, {Kind: "ServiceAccount", Namespace: "n", Name: "s"},
	}}
	cells := map[string]any{}
	for i, cell := range in.Cells(b, time.Time{}) {
		cells[in.Columns()[i].Name] = cell
	}
	for name, want := range map[string]string{"Role": "Role/r", "Users": "u, v", "Groups": "g", "ServiceAccounts": "n/s"} {
		if cells[name] != want {
			t.Errorf("%s is %q, want %q", name, cells[name], want)
		}
	}
}

// TestAutoscalerOfV1: of the metrics in use autoscaling/v1 has the CPU's in a field, all in an
// annotation.
func TestAutoscalerOfV1(t *testing.T) {
	use := func(name v1.ResourceName, percent int32) autoscalingv2.MetricStatus {
		return autoscalingv2.MetricStatus{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: name, Current: autoscalingv2.MetricValueStatus{AverageUtilization: new(percent)}}}
	}
	stored := &autoscalingv2.HorizontalPodAutoscaler{Status: autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentMetrics: []autoscalingv2.MetricStatus{use(v1.ResourceCPU, 40), use(v1.ResourceMemory, 70)},
	}}
	out, err := hpaFromStored(stored)
	if err != nil {
		t.Fatal(err)
	}
	h := out.(*autoscalingv1.HorizontalPodAutoscaler)
	if p := h.Status.CurrentCPUUtilizationPercentage; p == nil || *p != 40 || strings.Count(h.Annotations[annotationCurrent], `"name":`) != 2 {
		t.Errorf("%v, %q", p, h.Annotations)
	}
}

// TestVolumeSourceDefaults: volumes, and those that attachments have in them, get what a source
// leaves out.
func TestVolumeSourceDefaults(t *testing.T) {
	source := v1.PersistentVolumeSource{ScaleIO: &v1.ScaleIOPersistentVolumeSource{}}
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: *source.DeepCopy()}}
	attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{
		InlineVolumeSpec: &v1.PersistentVolumeSpec{PersistentVolumeSource: *source.DeepCopy()}}}}
	New(features.Gates{}).Find(PersistentVolume).SetDefaults(volume)
	New(features.Gates{}).Find(VolumeAttachment).SetDefaults(attachment)
	for _, s := range []*v1.ScaleIOPersistentVolumeSource{volume.Spec.ScaleIO, attachment.Spec.Source.InlineVolumeSpec.ScaleIO} {
		if s.StorageMode != "ThinProvisioned" || s.FSType != "xfs" {
			t.Errorf("%+v", s)
		}
	}
}

// TestStatusCounts: what a workload counts is not less than nothing.
func TestStatusCounts(t *testing.T) {
	in := New(features.Gates{}).Find(ReplicaSet)
	old := &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{Replicas: 2}}
	for _, tc := range []struct {
		status appsv1.ReplicaSetStatus
		want   string
	}{
		{appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 1}, ""},
		{appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: -1}, "status.readyReplicas: Invalid value: -1: must be greater than or equal to 0"},
		{appsv1.ReplicaSetStatus{ObservedGeneration: -1}, "status.observedGeneration: Invalid value: -1"},
		{appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 2}, "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"},
	} {
		wantError(t, in.ValidateUpdate(&appsv1.ReplicaSet{Status: tc.status}, old, "status").ToAggregate(), tc.want)
	}
}

// TestTemplateWarnings: of a DaemonSet whose template stays what it was nothing is said again.
func TestTemplateWarnings(t *testing.T) {
	in := New(features.Gates{}).Find(DaemonSet)
	made := &appsv1.DaemonSet{}
	made.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
	made.Spec.Template.Spec.NodeSelector = map[string]string{"beta.kubernetes.io/os": "linux"}
	changed := made.DeepCopy()
	changed.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
	for _, tc := range []struct {
		name     string
		old      kind.Object
		sub      string
		warnings int
	}{
		{"made", nil, "", 1}, {"same template", made, "", 0}, {"another template", changed, "", 1}, {"status", changed, "status", 0},
	} {
		if got := in.Warnings(made, tc.old, tc.sub); len(got) != tc.warnings {
			t.Errorf("%s: %q, want %d", tc.name, got, tc.warnings)
		}
	}
}

// TestIngressWarnings: who names a class by the annotation is told when it is made.
func TestIngressWarnings(t *testing.T) {
	in := New(features.Gates{}).Find(Ingress)
	i := &networkingv1.Ingress{}
	i.Annotations = map[string]string{annotationIngressClass: "a"}
	if got := in.Warnings(i, nil, ""); len(got) != 1 || !strings.Contains(got[0], "is deprecated") {
		t.Errorf("made: %q", got)
	}
	if got := in.Warnings(i, i, ""); len(got) > 0 {
		t.Errorf("updated: %q", got)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

// TestFlowControlObjects wants what the server makes for itself to pass its own rules
// unchanged.
func TestFlowControlObjects(t *testing.T) {
	for _, f := range append(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas...) {
		wantError(t, New(features.Gates{}).Validate(f), "")
	}
	for _, l := range append(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations...) {
		wantError(t, New(features.Gates{}).Validate(l), "")
	}
}

// TestCSR follows a request through its subresources.
func TestCSR(t *testing.T) {
	in := New(features.Gates{}).Find(CertificateSigningRequest)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	old := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: "kubernetes.io/kube-apiserver-client", Usages: []certificatesv1.KeyUsage{"client auth"},
	}}
	old.Name = "x"
	wantError(t, in.Validate(old, false).ToAggregate(), "")
	bad := old.DeepCopy()
	bad.Spec.SignerName, bad.Spec.Usages, bad.Spec.ExpirationSeconds = "a/b", []certificatesv1.KeyUsage{"odd", "any", "any"}, new(int32(599))
	for _, want := range []string{"spec.usages[0]: Unsupported value", "spec.usages[2]: Duplicate value: \"any\"", "should be a domain with at least two segments", "less than 600 seconds"} {
		wantError(t, in.Validate(bad, false).ToAggregate(), want)
	}

	update := func(sub string, change func(c *certificatesv1.CertificateSigningRequest)) (*certificatesv1.CertificateSigningRequest, error) {
		c := old.DeepCopy()
		change(c)
		if !in.PrepareUpdate(c, old, sub) {
			t.Fatalf("no subresource %q", sub)
		}
		in.StampUpdate(time.Unix(1e9, 0), c, old, sub)
		return c, in.ValidateUpdate(kind.Object(c), old, sub).ToAggregate()
	}
	approve := func(c *certificatesv1.CertificateSigningRequest) {
		c.Spec.SignerName = "other.example.com/x"
		c.Status.Certificate = []byte("x")
		c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue}}
	}
	c, err := update("", approve)
	wantError(t, err, "")
	if c.Spec.SignerName != old.Spec.SignerName || len(c.Status.Conditions) > 0 {
		t.Error("an update reaches spec or status")
	}
	_, err = update("status", approve)
	wantError(t, err, `updates may not add a condition of type "Approved"`)
	c, err = update("approval", approve)
	wantError(t, err, "")
	if len(c.Status.Conditions) != 1 || c.Status.Conditions[0].LastUpdateTime.Unix() != 1e9 || c.Status.Certificate != nil {
		t.Errorf("approved: %+v", c.Status)
	}
	old = c
	_, err = update("approval", func(c *certificatesv1.CertificateSigningRequest) { c.Status.Conditions = nil })
	wantError(t, err, `updates may not remove a condition of type "Approved"`)
	_, err = update("approval", func(c *certificatesv1.CertificateSigningRequest) {
		c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateDenied, Status: v1.ConditionTrue})
	})
	wantError(t, err, "Approved and Denied conditions are mutually exclusive")
	_, err = update("status", func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = []byte("x") })
	wantError(t, err, "must contain at least one CERTIFICATE PEM block")
}

// TestStorageKeys: errors tell where upstream keeps an object.
func TestStorageKeys(t *testing.T) {
	for k, want := range map[kind.Kind]string{
		Pod: "/pods/n/a", Service: "/services/specs/n/a", Endpoints: "/services/endpoints/n/a", ReplicationController: "/controllers/n/a",
		Ingress: "/ingress/n/a", ConfigMap: "/configmaps/n/a", CustomResourceDefinition: "/apiextensions.k8s.io/customresourcedefinitions/n/a",
	} {
		if got := New(features.Gates{}).Find(k).StorageKey("n", "a"); got != want {
			t.Errorf("%s: %s, want %s", k, got, want)
		}
	}
	if got := New(features.Gates{}).Find(Node).StorageKey("", "a"); got != "/minions/a" {
		t.Errorf("Node: %s", got)
	}
}

// TestStatusRecords: a record of a pod's status has its conditions, with the reasons of those that
// have one.
func TestStatusRecords(t *testing.T) {
	n := kind.NewNotes(New(features.Gates{}))
	podStatus(n, &v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady"},
	}})
	got := map[string]string{}
	for _, f := range n.Fields {
		got[f.Key] = f.Value
	}
	if got["phase"] != "Pending" || got["conditions"] != "PodScheduled=True Ready=False/ContainersNotReady" {
		t.Errorf("%q", got)
	}
}
