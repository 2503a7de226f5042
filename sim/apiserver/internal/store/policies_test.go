package store

import (
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// manifest creates what a manifest says.
func manifest(t *testing.T, s *Store, text string) kind.Object {
	t.Helper()
	obj, err := s.Kinds().Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mustCreate(t, s, obj)
}

const limitPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [CREATE, DELETE], resources: ["secrets", "pods"]}]
    excludeResourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: ["*"], resourceNames: [free]}]
  validations:
  - expression: "request.operation == 'DELETE' || has(object.metadata.labels) && object.metadata.labels['team'] == params.data['team']"
    messageExpression: "'team must be ' + params.data['team']"
    reason: Forbidden
  - expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'"
    message: it is kept
`

const limitBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limit}
spec:
  policyName: limit
  paramRef: {name: rules, parameterNotFoundAction: ACTION}
  validationActions: [EFFECT]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}
`

// TestValidatingPolicies: parameters, exclusions, selectors, effects, and what is stamped.
func TestValidatingPolicies(t *testing.T) {
	secret := func(name, team, namespace string) *v1.Secret {
		return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": team}}}
	}
	for _, tc := range []struct {
		name, effect, action string
		param                bool
		obj                  *v1.Secret
		want, warning        string
	}{
		{"fits", "Deny", "Deny", true, secret("a", "blue", "default"), "", ""},
		{"does not", "Deny", "Deny", true, secret("a", "red", "default"), `secrets "a" is forbidden: ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: team must be blue`, ""},
		{"warns", "Warn", "Deny", true, secret("a", "red", "default"), "", "Validation failed for ValidatingAdmissionPolicy 'limit' with binding 'limit': team must be blue"},
		{"excluded", "Deny", "Deny", true, secret("free", "red", "default"), "", ""},
		{"elsewhere", "Deny", "Deny", true, secret("a", "red", "kube-system"), "", ""},
		{"without parameter", "Deny", "Deny", false, secret("a", "blue", "default"), "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction", ""},
		{"without parameter, allowed", "Deny", "Allow", false, secret("a", "red", "default"), "", ""},
	} {
		s := New(Options{})
		if tc.param {
			mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rules"}, Data: map[string]string{"team": "blue"}})
		}
		manifest(t, s, limitPolicy)
		manifest(t, s, strings.NewReplacer("ACTION", tc.action, "EFFECT", tc.effect).Replace(limitBinding))
		var warned []string
		s.Calling(&admission.Caller{Warn: func(text string) { warned = append(warned, text) }}, func() {
			_, err := s.Create(t0, tc.obj)
			check(t, err, tc.want)
		})
		if got := strings.Join(warned, "|"); got != tc.warning {
			t.Errorf("%s: warned %q, want %q", tc.name, got, tc.warning)
		}
	}
}

// TestSelectedParameters: the parameters that a selector finds in the request's namespace are asked
// one by one.
func TestSelectedParameters(t *testing.T) {
	s := New(Options{})
	for _, m := range []struct{ namespace, name, team, label string }{
		{"default", "one", "blue", "yes"}, {"default", "other", "red", "no"}, {"kube-system", "far", "green", "yes"},
	} {
		mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: m.name, Labels: map[string]string{"rules": m.label}}, Data: map[string]string{"team": m.team}})
	}
	manifest(t, s, limitPolicy)
	manifest(t, s, strings.NewReplacer("ACTION", "Deny", "EFFECT", "Deny", "name: rules", "selector: {matchLabels: {rules: 'yes'}}").Replace(limitBinding))
	for team, want := range map[string]string{"blue": "", "red": "team must be blue", "green": "team must be blue"} {
		_, err := s.Create(t0, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: team, Labels: map[string]string{"team": team}}})
		check(t, err, want)
	}
	if _, err := s.Delete(t0, kinds.ConfigMap, "default", "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Create(t0, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", Labels: map[string]string{"team": "blue"}}})
	check(t, err, "no params found for policy binding with `Deny` parameterNotFoundAction")
}

// TestPoliciesElsewhere: deletions, and pods of a template, each of which is asked about.
func TestPoliciesElsewhere(t *testing.T) {
	s := New(Options{})
	mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rules"}, Data: map[string]string{"team": "blue"}})
	mustCreate(t, s, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}})
	manifest(t, s, limitPolicy)
	manifest(t, s, strings.NewReplacer("ACTION", "Deny", "EFFECT", "Deny").Replace(limitBinding))
	_, err := s.Delete(t0, kinds.Secret, "default", "kept", metav1.DeleteOptions{})
	check(t, err, "it is kept")
	tpl, err := s.NewTemplate(testPod("p"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateFromTemplate(t0, tpl, Stamp{Name: "red"})
	check(t, err, "team must be blue")
	_, err = s.CreateFromTemplate(t0, tpl, Stamp{Name: "blue", Labels: map[string]string{"team": "blue"}})
	check(t, err, "")
}

// TestMutatingPolicies: both sorts of patches, order, another round, and templates that
// stay as they are.
func TestMutatingPolicies(t *testing.T) {
	s := New(Options{})
	for _, p := range []struct{ name, again, kind, expression string }{
		{"a", "IfNeeded", "jsonPatch", `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"seen": has(object.metadata.labels) ? string(size(object.metadata.labels)) : "0"}}]`},
		{"b", "Never", "applyConfiguration", `Object{metadata: Object.metadata{labels: {"by": request.userInfo.username}}}`},
	} {
		patchType := strings.ToUpper(p.kind[:1]) + p.kind[1:]
		if p.kind == "jsonPatch" {
			patchType = "JSONPatch"
		}
		manifest(t, s, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: `+p.name+`}
spec:
  reinvocationPolicy: `+p.again+`
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps, pods]}]}
  mutations: [{patchType: `+patchType+`, `+p.kind+`: {expression: '`+p.expression+`'}}]
`)
		manifest(t, s, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: `+p.name+`}
spec: {policyName: `+p.name+`}
`)
	}
	s.Calling(&admission.Caller{}, func() {
		s.caller.User.Username = "me"
		cm := mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}})
		if cm.GetLabels()["by"] != "me" || cm.GetAnnotations()["seen"] != "1" {
			t.Errorf("%v, %v", cm.GetLabels(), cm.GetAnnotations())
		}
		tpl, err := s.NewTemplate(testPod("p"))
		if err != nil {
			t.Fatal(err)
		}
		pod, err := s.CreateFromTemplate(t0, tpl, Stamp{Name: "p"})
		if err != nil || pod.Labels["by"] != "me" || len(tpl.Pod().Labels) != 0 {
			t.Errorf("%v, %v, %v", pod, tpl.Pod().Labels, err)
		}
		if i := slices.IndexFunc(s.Pods(), func(p *v1.Pod) bool { return p.Annotations["seen"] == "1" }); i < 0 {
			t.Error("a stamped pod is not asked about twice")
		}
	})
}

const takenPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: taken}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding, pods/eviction, serviceaccounts/token]}
    - {apiGroups: [apps, example.com], apiVersions: [v1], operations: [UPDATE], resources: ["*/scale"]}
  validations:
  - expression: "request.kind.kind != 'Binding' || object.target.name != 'forbidden'"
    message: not there
  - expression: "request.kind.kind != 'Eviction' || object.metadata.name != 'stays'"
    message: it stays
  - expression: "request.kind.kind != 'Scale' || object.spec.replicas - oldObject.spec.replicas < 3"
    message: too many at once
  - expression: "request.kind.kind != 'TokenRequest' || object.spec.expirationSeconds <= 3600"
    message: too long
`

const takenBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: taken}
spec: {policyName: taken, validationActions: [Deny]}
`

const movedPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: moved}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/target/name', value: 'other'}]"}
`

const movedBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: moved}
spec: {policyName: moved}
`

// TestPoliciesOfSubresources: what subresources take is judged as what it is, under the
// resource that takes it.
func TestPoliciesOfSubresources(t *testing.T) {
	pod := func(name string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	}
	s := New(Options{})
	manifest(t, s, takenPolicy)
	manifest(t, s, takenBinding)
	for _, name := range []string{"stays", "goes", "bound"} {
		mustCreate(t, s, pod(name))
	}
	manifest(t, s, "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}")
	scale := func(n int32) error {
		sc, err := s.GetScale(kinds.ReplicaSet, "default", "web")
		if err != nil {
			t.Fatal(err)
		}
		sc.Spec.Replicas = n
		_, err = s.UpdateScale(t0, kinds.ReplicaSet, sc)
		return err
	}
	bind := func(name, node string) error {
		_, err := s.Bind(t0, "default", name, node, metav1.ObjectMeta{})
		return err
	}
	token := func(seconds int64) error {
		_, _, err := s.TokenRequest(t0, "default", "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}})
		return err
	}
	const denied = " is forbidden: ValidatingAdmissionPolicy 'taken' with binding 'taken' denied request: "
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"binding", bind("stays", "forbidden"), `pods "stays"` + denied + "not there"},
		{"another binding", bind("bound", "n"), ""},
		{"eviction", s.Evict(t0, "default", "stays", metav1.DeleteOptions{}), `pods "stays"` + denied + "it stays"},
		{"another eviction", s.Evict(t0, "default", "goes", metav1.DeleteOptions{}), ""},
		{"scale", scale(4), `replicasets.apps "web"` + denied + "too many at once"},
		{"another scale", scale(3), ""},
		{"token", token(7200), `serviceaccounts "default"` + denied + "too long"},
		{"another token", token(3600), ""},
	} {
		if got := errorText(tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	manifest(t, s, movedPolicy)
	manifest(t, s, movedBinding)
	if err := bind("stays", "n"); err != nil {
		t.Fatal(err)
	}
	if node := s.Pod("default", "stays").Spec.NodeName; node != "other" {
		t.Errorf("bound to %q", node)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
