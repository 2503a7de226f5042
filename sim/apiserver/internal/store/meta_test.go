package store

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// TestUpdateOfMetadata states what updates may do to metadata, and how often upstream
// tells of a mistake: once for all kinds, and again where the kind's rules repeat it.
func TestUpdateOfMetadata(t *testing.T) {
	deleted := metav1.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		edit   func(*v1.ConfigMap)
		want   string // error, or "" for success
		causes int
	}{
		{"another version", func(c *v1.ConfigMap) { c.ResourceVersion = "1" }, "the object has been modified", 0},
		{"no version", func(c *v1.ConfigMap) { c.ResourceVersion = "" }, "", 0},
		{"version 0", func(c *v1.ConfigMap) { c.ResourceVersion = "0" }, "", 0},
		{"no number", func(c *v1.ConfigMap) { c.ResourceVersion = "abc" }, `strconv.ParseUint: parsing "abc": invalid syntax`, 0},
		{"another object", func(c *v1.ConfigMap) { c.UID = "x" }, "StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/c, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: ", 0},
		{"creation", func(c *v1.ConfigMap) { c.CreationTimestamp = deleted }, "", 0},
		{"generateName", func(c *v1.ConfigMap) { c.GenerateName = "c-" }, "", 0},
		{"deletion", func(c *v1.ConfigMap) { c.DeletionTimestamp = &deleted }, "metadata.deletionTimestamp: Invalid value: ", 2},
		{"label", func(c *v1.ConfigMap) { c.Labels = map[string]string{"a b": "c"} }, `metadata.labels: Invalid value: "a b"`, 4},
		{"finalizer", func(c *v1.ConfigMap) { c.Finalizers = []string{"f"} }, "metadata.finalizers[0]: Invalid value: \"f\": name is neither a standard finalizer name nor is it fully qualified", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			c := mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}}).DeepCopyObject().(*v1.ConfigMap)
			tc.edit(c)
			_, err := s.Update(t0, c, "")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil && len(status.Status().Details.Causes) != tc.causes {
				t.Errorf("got %d causes, want %d", len(status.Status().Details.Causes), tc.causes)
			}
		})
	}
}

// TestMetaRules states how often the rules of kinds find the same mistakes in metadata, as
// kube-apiserver v1.36.3 does: first of a new object, then of an update.
func TestMetaRules(t *testing.T) {
	for _, tc := range []struct {
		kind, manifest string
		created        [3]int // a bad label, finalizer, prefix of generated names
		updated        [3]int
	}{
		{"a plain update's", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: x}\nspec: {hard: {pods: 1}}", [3]int{1, 1, 1}, [3]int{3, 1, 0}},
		{"again", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}", [3]int{1, 1, 1}, [3]int{4, 2, 1}},
		{"as new", "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\nspec: {limits: []}", [3]int{1, 1, 1}, [3]int{3, 1, 1}},
		{"as new, twice", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}", [3]int{1, 1, 1}, [3]int{4, 2, 2}},
		{"left", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailable: 1}", [3]int{1, 0, 0}, [3]int{2, 0, 0}},
		{"any finalizer", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: x}\nhandler: runc", [3]int{1, 0, 1}, [3]int{3, 0, 0}},
		{"names as declared", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: x}", [3]int{1, 1, 0}, [3]int{4, 2, 0}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			for i, edit := range []func(kind.Object){
				func(o kind.Object) { o.SetLabels(map[string]string{"a": "b c"}) },
				func(o kind.Object) { o.SetFinalizers([]string{"nope"}) },
				func(o kind.Object) { o.SetGenerateName("Bad_") },
			} {
				s := New(Options{})
				obj, err := s.Kinds().Decode([]byte(tc.manifest))
				if err != nil {
					t.Fatal(err)
				}
				bad := obj.DeepCopyObject().(kind.Object)
				edit(bad)
				_, err = s.Create(t0, bad)
				if got := causes(err); got != tc.created[i] {
					t.Errorf("new, edit %d: %d causes, want %d: %v", i, got, tc.created[i], err)
				}
				s = New(Options{})
				made := mustCreate(t, s, obj).DeepCopyObject().(kind.Object)
				edit(made)
				_, err = s.Update(t0, made, "")
				if got := causes(err); got != tc.updated[i] {
					t.Errorf("update, edit %d: %d causes, want %d: %v", i, got, tc.updated[i], err)
				}
			}
		})
	}
}

// causes counts those of an error of validation.
func causes(err error) int {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return 0
	}
	return len(status.Status().Details.Causes)
}

// TestStoredAsProtobuf has a client's empty lists come back as none, and those of the
// control plane stay.
func TestStoredAsProtobuf(t *testing.T) {
	s := New(Options{})
	limits := func(name string) *v1.LimitRange {
		return &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.LimitRangeSpec{Limits: []v1.LimitRangeItem{}}}
	}
	if got := mustCreate(t, s, limits("a")).(*v1.LimitRange).Spec.Limits; got == nil {
		t.Error("the control plane's list is none")
	}
	s.Calling(&admission.Caller{}, func() {
		if got := mustCreate(t, s, limits("b")).(*v1.LimitRange); got.Spec.Limits != nil || got.Kind != "LimitRange" {
			t.Errorf("a client's: %#v", got)
		}
	})
}

// TestStatusKeepsMetadata states what of metadata an update of the status reaches.
func TestStatusKeepsMetadata(t *testing.T) {
	s := New(Options{})
	one := int32(1)
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	d := mustCreate(t, s, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: selector, Template: template}}).DeepCopyObject().(*appsv1.Deployment)
	rs := mustCreate(t, s, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector, Template: template}}).DeepCopyObject().(*appsv1.ReplicaSet)
	d.Labels, d.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
	rs.Labels = map[string]string{"l": "1"}
	if got, err := s.Update(t0, d, "status"); err != nil || got.GetLabels() != nil || got.GetAnnotations()["a"] != "1" {
		t.Errorf("Deployment: %v %v", got, err)
	}
	if got, err := s.Update(t0, rs, "status"); err != nil || got.GetLabels()["l"] != "1" {
		t.Errorf("ReplicaSet: %v %v", got, err)
	}
}

// TestGeneratedNames states that a generated name that is taken is drawn again, and what
// a prefix must be.
func TestGeneratedNames(t *testing.T) {
	s := New(Options{})
	next := *s.State
	taken := next.GenerateName("c-")
	mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: taken, Namespace: "default"}})
	made := mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-", Namespace: "default"}})
	if made.GetName() == taken || !strings.HasPrefix(made.GetName(), "c-") {
		t.Errorf("got %s beside %s", made.GetName(), taken)
	}
	_, err := s.Create(t0, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "CC-", Namespace: "default"}})
	if err == nil || !strings.Contains(err.Error(), `metadata.generateName: Invalid value: "CC-"`) {
		t.Errorf("got %v", err)
	}
	_, err = s.Create(t0, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: taken, GenerateName: "c-", Namespace: "default"}})
	if err == nil || !strings.Contains(err.Error(), "the server was not able to generate a unique name for the object") {
		t.Errorf("got %v", err)
	}
}

// TestDeleteOptions states which finalizers a deletion leaves to the garbage collector,
// and how its preconditions fail.
func TestDeleteOptions(t *testing.T) {
	yes, no := true, false
	policy := func(p metav1.DeletionPropagation) metav1.DeleteOptions {
		return metav1.DeleteOptions{PropagationPolicy: &p}
	}
	for _, tc := range []struct {
		name string
		opts metav1.DeleteOptions
		want string // finalizers of a ConfigMap and of a namespace, or the error
	}{
		{"none", metav1.DeleteOptions{}, "- -"},
		{"orphan", policy(metav1.DeletePropagationOrphan), "orphan orphan"},
		{"foreground", policy(metav1.DeletePropagationForeground), "foregroundDeletion foregroundDeletion"},
		{"orphanDependents", metav1.DeleteOptions{OrphanDependents: &yes}, "orphan orphan"},
		{"not orphanDependents", metav1.DeleteOptions{OrphanDependents: &no}, "- foregroundDeletion"},
		{"uid", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr(types.UID("x"))}}, `Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition (x) does not match`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			mustCreate(t, s, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}})
			mustCreate(t, s, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			c, err := s.Delete(t0, kinds.ConfigMap, "default", "c", tc.opts)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			n, err := s.Delete(t0, kinds.Namespace, "", "n", tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			said := func(f []string) string {
				if len(f) == 0 {
					return "-"
				}
				return strings.Join(f, ",")
			}
			if got := said(c.GetFinalizers()) + " " + said(n.GetFinalizers()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestDryRunsUIDs states that what a dry run makes up is nobody else's, and takes nothing
// from the writes that follow.
func TestDryRunsUIDs(t *testing.T) {
	dry, plain := New(Options{}), New(Options{})
	made := map[types.UID]bool{}
	for range 2 {
		dry.DryRun(func() {
			made[mustCreate(t, dry, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}}).GetUID()] = true
		})
	}
	one := mustCreate(t, dry, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}})
	other := mustCreate(t, plain, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}})
	if len(made) != 2 || made[one.GetUID()] || one.GetUID() != other.GetUID() {
		t.Errorf("dry runs made %v, writes %s and %s", made, one.GetUID(), other.GetUID())
	}
}
