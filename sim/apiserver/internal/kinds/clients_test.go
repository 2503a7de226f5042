package kinds

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	} {
		obj, err := New(features.Gates{}).Decode([]byte(tc.manifest))
		if err != nil {
			t.Fatalf("%s: %v", tc.manifest, err)
		}
		wantError(t, New(features.Gates{}).Validate(obj), tc.want)
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
