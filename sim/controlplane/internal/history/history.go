// Package history keeps the ControllerRevisions of StatefulSets and DaemonSets:
// the templates that they have had. It mirrors pkg/controller/history at v1.36.
//
// A revision stores a template as a strategic merge patch of its owner, and is
// found again by comparing these bytes. Making and reading patches is JSON work,
// so both directions are remembered: a patch for each generation of an owner, and
// the template of each revision that pods are made of.
package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// HashLabel is the label with a revision's hash.
const HashLabel = "controller.kubernetes.io/hash"

// Revision is a ControllerRevision.
type Revision = appsv1.ControllerRevision

// History is the revisions of one controller's objects.
type History struct {
	api       *apiserver.Component
	revisions *controller.Owned[*Revision]
	templates map[types.UID]*v1.PodTemplateSpec // by revision
	made      map[types.UID]encoded             // by owner
}

// encoded is an owner's template as a patch. It holds for one generation: whoever
// changes a template changes that.
type encoded struct {
	generation int64
	raw        []byte
}

// NewHistory returns the history of one controller's objects.
func NewHistory(api *apiserver.Component, revisions *controller.Owned[*Revision]) *History {
	h := &History{api: api, revisions: revisions, templates: map[types.UID]*v1.PodTemplateSpec{}, made: map[types.UID]encoded{}}
	revisions.OnChange(func(_ *metav1.OwnerReference, old, r *Revision) {
		if r == nil {
			delete(h.templates, old.UID)
		}
	})
	return h
}

// List returns the owner's revisions, oldest first.
func (h *History) List(owner types.UID) []*Revision {
	list := slices.Clone(h.revisions.Of(owner))
	slices.SortStableFunc(list, func(a, b *Revision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Patch is a template as a revision has it: a strategic merge patch of its owner.
func (h *History) Patch(owner apiserver.Object, t *v1.PodTemplateSpec) ([]byte, error) {
	if m, ok := h.made[owner.GetUID()]; ok && m.generation == owner.GetGeneration() {
		return m.raw, nil
	}
	data, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("the template of %s/%s: %w", owner.GetNamespace(), owner.GetName(), err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	m["$patch"] = "replace"
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": m}})
	if err != nil {
		return nil, err
	}
	h.made[owner.GetUID()] = encoded{owner.GetGeneration(), raw}
	return raw, nil
}

// Forget drops what is kept of an owner that is gone.
func (h *History) Forget(owner types.UID) { delete(h.made, owner) }

// Template is the template that a revision holds. It is shared.
func (h *History) Template(r *Revision) (*v1.PodTemplateSpec, error) {
	if t := h.templates[r.UID]; t != nil {
		return t, nil
	}
	var data struct {
		Spec struct {
			Template v1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("controller revision %s/%s: %w", r.Namespace, r.Name, err)
	}
	h.templates[r.UID] = &data.Spec.Template
	return &data.Spec.Template, nil
}

// Equal reports whether a revision holds that patch.
func Equal(r *Revision, raw []byte) bool { return bytes.Equal(r.Data.Raw, raw) }

// Hash is the hash in the name of a revision; collisions may be nil.
func Hash(raw []byte, collisions *int32) string {
	h := fnv.New32()
	h.Write(raw)
	if collisions != nil {
		h.Write([]byte(strconv.FormatInt(int64(*collisions), 10)))
	}
	return controller.SafeEncode(fmt.Sprint(h.Sum32()))
}

// New returns a revision of the owner that is not stored yet.
func New(owner apiserver.Object, labels map[string]string, raw []byte, number int64, collisions *int32) *Revision {
	hash := Hash(raw, collisions)
	l := map[string]string{}
	maps.Copy(l, labels)
	l[HashLabel] = hash
	return &Revision{
		ObjectMeta: metav1.ObjectMeta{
			Name: revisionName(owner.GetName(), hash), Namespace: owner.GetNamespace(), Labels: l,
			Annotations: maps.Clone(owner.GetAnnotations()), OwnerReferences: []metav1.OwnerReference{controller.OwnerReference(owner)},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: number,
	}
}

// revisionName keeps a name within 253 characters, with room for the hash.
func revisionName(owner, hash string) string { return owner[:min(len(owner), 223)] + "-" + hash }

// Create stores a revision. While another one has its name collisions is
// counted up.
func (h *History) Create(ctx context.Context, owner apiserver.Object, r *Revision, collisions *int32) (*Revision, error) {
	for {
		r.Name = revisionName(owner.GetName(), Hash(r.Data.Raw, collisions))
		made, err := controller.Create(ctx, h.api, r)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		is, ok := controller.Lookup[*Revision](h.api, apiserver.KindControllerRevision, controller.KeyOf(r))
		if ok && Equal(is, r.Data.Raw) {
			return is, nil
		}
		*collisions++
	}
}

// Renumber gives a revision another number. So a rollback makes an old template
// the newest without storing it twice.
func (h *History) Renumber(ctx context.Context, r *Revision, number int64) (*Revision, error) {
	if r.Revision == number {
		return r, nil
	}
	next := *r
	next.Revision = number
	return controller.Update(ctx, h.api, &next, "")
}

// Delete deletes a revision; it may be gone already.
func (h *History) Delete(ctx context.Context, r *Revision) error {
	err := controller.Delete(ctx, h.api, r, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Claim is Adopt, and lets go of the owner's revisions that it doesn't select any more.
func (h *History) Claim(ctx context.Context, owner apiserver.Object, sel *metav1.LabelSelector) error {
	for _, r := range slices.Clone(h.revisions.Of(owner.GetUID())) {
		if controller.Selects(sel, r.Labels) {
			continue
		}
		next := *r
		next.OwnerReferences = slices.DeleteFunc(slices.Clone(r.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() })
		if _, err := controller.Update(ctx, h.api, &next, ""); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return h.Adopt(ctx, owner, sel)
}

// Relabel gives a revision another label.
func (h *History) Relabel(ctx context.Context, r *Revision, label, value string) (*Revision, error) {
	next := *r
	next.Labels = maps.Clone(r.Labels)
	next.Labels[label] = value
	return controller.Update(ctx, h.api, &next, "")
}

// Adopt makes the owner the controller of revisions that it selects and nobody
// has.
func (h *History) Adopt(ctx context.Context, owner apiserver.Object, sel *metav1.LabelSelector) error {
	var orphans []*Revision
	for _, r := range apiserver.Objects[*Revision](h.api.Server().Store(), apiserver.KindControllerRevision) {
		if r.Namespace == owner.GetNamespace() && metav1.GetControllerOfNoCopy(r) == nil && controller.Selects(sel, r.Labels) {
			orphans = append(orphans, r)
		}
	}
	for _, r := range orphans {
		next := *r
		next.OwnerReferences = append(slices.Clone(r.OwnerReferences), controller.OwnerReference(owner))
		if _, err := controller.Update(ctx, h.api, &next, ""); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
