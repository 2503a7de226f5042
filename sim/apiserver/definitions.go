package apiserver

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/custom"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
)

// definitionDelay is what the API server's own controllers take to see a change.
const definitionDelay = time.Millisecond

// cleanUpPeriod is how often it is looked whether a definition's resources are gone.
const cleanUpPeriod = 5 * time.Second

// definitions accept the names of CustomResourceDefinitions, establish them and have
// their resources stored. They mirror the naming and establishing controllers of
// k8s.io/apiextensions-apiserver (pkg/controller/status, pkg/controller/establish),
// which are part of kube-apiserver.
type definitions struct {
	s *store.Store
	l *loop.Loop
	// changed is told of kinds that come, change or go.
	changed func()
}

// watchDefinitions has definitions seen to.
func watchDefinitions(s *store.Store, l *loop.Loop, changed func()) {
	d := &definitions{s, l, changed}
	s.OnChange(d.onChange, kinds.CustomResourceDefinition)
}

// onChange has a definition looked at, as a controller's informer would.
func (d *definitions) onChange(c Change) {
	def := c.New.(*apiextensionsv1.CustomResourceDefinition)
	if c.Type == watch.Deleted {
		d.l.Root().After(definitionDelay, func() {
			d.drop(def)
			d.acceptOthers(def)
		})
		return
	}
	if old, ok := c.Old.(*apiextensionsv1.CustomResourceDefinition); ok && established(def) && !equality.Semantic.DeepEqual(old.Spec, def.Spec) {
		_ = d.serve(def) // as in sync
	}
	d.l.Root().After(definitionDelay, func() { d.sync(def.Name) })
}

// sync takes a definition one step further: its names are accepted, then it is
// established.
func (d *definitions) sync(name string) {
	def, ok := d.s.Lookup(kinds.CustomResourceDefinition, "", name).(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return
	}
	if def.DeletionTimestamp != nil {
		d.cleanUp(def)
		return
	}
	next := def.DeepCopy()
	if !equality.Semantic.DeepEqual(def.Spec.Names, def.Status.AcceptedNames) {
		accepted := d.acceptNames(next)
		setDefinitionCondition(next, accepted, d.l.Now())
		if !established(next) {
			c := condition(apiextensionsv1.Established, metav1.ConditionFalse, "NotAccepted", "not all names are accepted")
			if accepted.Status == apiextensionsv1.ConditionTrue {
				c = condition(apiextensionsv1.Established, metav1.ConditionFalse, "Installing", "the initial names have been accepted")
			}
			setDefinitionCondition(next, c, d.l.Now())
		}
	} else if !established(def) {
		if err := d.serve(def); err != nil {
			return // as upstream, which logs it: the rules let no such schema pass
		}
		setDefinitionCondition(next, condition(apiextensionsv1.Established, metav1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted"), d.l.Now())
	}
	if equality.Semantic.DeepEqual(def.Status, next.Status) {
		return
	}
	if d.update(next) {
		d.acceptOthers(next)
	}
}

// update writes a definition's status, and reports whether that went well.
func (d *definitions) update(def *apiextensionsv1.CustomResourceDefinition) bool {
	if d.s.KeepsManagedFields() {
		ownDefinitionStatus(def, d.l.Now())
	}
	_, err := d.s.Update(d.l.Now(), def, "status")
	return err == nil
}

// cleanUp takes the deletion of a definition one step further: its resources are deleted,
// and when they are gone nothing holds it any more. It mirrors pkg/controller/finalizer.
func (d *definitions) cleanUp(def *apiextensionsv1.CustomResourceDefinition) {
	if !slices.Contains(def.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	next := def.DeepCopy()
	setDefinitionCondition(next, condition(apiextensionsv1.Terminating, metav1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress"), d.l.Now())
	if !equality.Semantic.DeepEqual(def.Status, next.Status) {
		d.update(next) // which has it looked at again
		return
	}
	if !established(def) {
		setDefinitionCondition(next, condition(apiextensionsv1.Terminating, metav1.ConditionFalse, "NeverEstablished", "resource was never established"), d.l.Now())
	} else {
		if d.deleteInstances(Kind(def.Name)) > 0 {
			d.l.Root().After(cleanUpPeriod, func() { d.sync(def.Name) })
			return
		}
		setDefinitionCondition(next, condition(apiextensionsv1.Terminating, metav1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances"), d.l.Now())
	}
	d.update(next)
	d.s.PatchMeta(kinds.CustomResourceDefinition, "", def.Name, def.UID, store.MetaPatch{RemoveFinalizer: apiextensionsv1.CustomResourceCleanupFinalizer}) //nolint:errcheck // it is there
}

// deleteInstances deletes the resources of a definition, and returns how many are held by
// finalizers.
func (d *definitions) deleteInstances(k Kind) int {
	list, err := d.s.List(k, "")
	if err != nil {
		return 0 // not served: there are none
	}
	for _, obj := range list {
		if obj.GetDeletionTimestamp() == nil {
			d.s.Delete(d.l.Now(), k, obj.GetNamespace(), obj.GetName(), metav1.DeleteOptions{}) //nolint:errcheck // what stays is counted
		}
	}
	list, _ = d.s.List(k, "")
	return len(list)
}

// serve has a definition's resources stored by its present rules.
func (d *definitions) serve(def *apiextensionsv1.CustomResourceDefinition) error {
	row, err := custom.Row(def)
	if err != nil {
		return err
	}
	d.s.Define(row)
	d.changed()
	return nil
}

// drop ends that a definition's resources are stored. There are some only where its
// finalizer was taken off by hand: then nobody can get at them any more. (Upstream's stay
// in etcd, and are there again if the definition comes back.)
func (d *definitions) drop(def *apiextensionsv1.CustomResourceDefinition) {
	k := Kind(def.Name)
	if d.s.Kinds().Find(k) == nil {
		return
	}
	d.s.DropAll(k)
	d.s.Undefine(k)
	d.changed()
}

// acceptOthers looks at the other definitions of the group, for which names may have
// become free.
func (d *definitions) acceptOthers(def *apiextensionsv1.CustomResourceDefinition) {
	for _, o := range store.Objects[*apiextensionsv1.CustomResourceDefinition](d.s, kinds.CustomResourceDefinition) {
		if o.Spec.Group == def.Spec.Group && o.Name != def.Name {
			d.l.Root().After(definitionDelay, func() { d.sync(o.Name) })
		}
	}
}

// acceptNames writes into a definition's status which of its names are free, and returns
// the condition that says so. What is found last is said.
func (d *definitions) acceptNames(def *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionCondition {
	resources, kindNames := sets.New[string](), sets.New[string]()
	for _, o := range store.Objects[*apiextensionsv1.CustomResourceDefinition](d.s, kinds.CustomResourceDefinition) {
		if n := o.Status.AcceptedNames; o.Spec.Group == def.Spec.Group {
			resources.Insert(n.Plural, n.Singular)
			resources.Insert(n.ShortNames...)
			kindNames.Insert(n.Kind, n.ListKind)
		}
	}
	out := condition(apiextensionsv1.NamesAccepted, metav1.ConditionTrue, "NoConflicts", "no conflicts found")
	want, has := def.Spec.Names, &def.Status.AcceptedNames
	refuse := func(reason, name string) {
		out = condition(apiextensionsv1.NamesAccepted, metav1.ConditionFalse, reason, fmt.Sprintf("%q is already in use", name))
	}
	accept := func(name string, to *string, taken sets.Set[string], reason string) {
		if name != *to && taken.Has(name) {
			refuse(reason, name)
			return
		}
		*to = name
	}
	accept(want.Plural, &has.Plural, resources, "PluralConflict")
	accept(want.Singular, &has.Singular, resources, "SingularConflict")
	free := true
	for _, name := range want.ShortNames {
		if !slices.Contains(has.ShortNames, name) && resources.Has(name) {
			refuse("ShortNamesConflict", name)
			free = false
		}
	}
	if free {
		has.ShortNames = want.ShortNames
	}
	accept(want.Kind, &has.Kind, kindNames, "KindConflict")
	accept(want.ListKind, &has.ListKind, kindNames, "ListKindConflict")
	has.Categories = want.Categories
	return out
}

func condition(t apiextensionsv1.CustomResourceDefinitionConditionType, status metav1.ConditionStatus, reason, message string) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{Type: t, Status: apiextensionsv1.ConditionStatus(status), Reason: reason, Message: message}
}

// setDefinitionCondition adds a condition, or puts it in the place of the one of its
// type, whose time it keeps while the status stays.
func setDefinitionCondition(def *apiextensionsv1.CustomResourceDefinition, c apiextensionsv1.CustomResourceDefinitionCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	for i := range def.Status.Conditions {
		if o := &def.Status.Conditions[i]; o.Type == c.Type {
			if o.Status == c.Status {
				c.LastTransitionTime = o.LastTransitionTime
			}
			*o = c
			return
		}
	}
	def.Status.Conditions = append(def.Status.Conditions, c)
}

// ownDefinitionStatus notes in a definition's managed fields that the API server itself
// writes its status, as upstream's would.
func ownDefinitionStatus(def *apiextensionsv1.CustomResourceDefinition, now time.Time) {
	path := func(parts ...any) fieldpath.Path {
		return fieldpath.MakePathOrDie(append([]any{"status"}, parts...)...)
	}
	set := &fieldpath.Set{}
	n := def.Status.AcceptedNames
	for _, name := range []struct {
		field string
		is    bool
	}{
		{"kind", n.Kind != ""}, {"plural", n.Plural != ""}, {"singular", n.Singular != ""}, {"listKind", n.ListKind != ""},
		{"shortNames", len(n.ShortNames) > 0}, {"categories", len(n.Categories) > 0},
	} {
		if name.is {
			set.Insert(path("acceptedNames", name.field))
		}
	}
	for _, c := range def.Status.Conditions {
		key := fieldpath.KeyByFields("type", string(c.Type))
		set.Insert(path("conditions", key))
		for _, field := range []string{"lastTransitionTime", "message", "reason", "status", "type"} {
			set.Insert(path("conditions", key, field))
		}
	}
	fields, err := set.ToJSON()
	if err != nil {
		return // a set of names has JSON
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	def.ManagedFields = append(slices.DeleteFunc(def.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == ownManager && e.Subresource == "status"
	}), metav1.ManagedFieldsEntry{
		Manager: ownManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
		Subresource: "status", Time: &at, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: fields},
	})
}

// ownManager is what managed fields call the API server.
const ownManager = "kube-apiserver"

// established reports whether a definition's resources are served.
func established(def *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
