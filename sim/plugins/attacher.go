package plugins

import (
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Attacher stands for the external-attacher of a driver of CSI: it acts on the driver's
// VolumeAttachments.
type Attacher struct {
	Driver string
	// Attach and Detach are how long it takes.
	Attach, Detach time.Duration
	// Fail is how often an attempt to attach fails first.
	Fail int
	// Metadata is what it says of an attached volume.
	Metadata map[string]string
}

// attacher is one that runs on the API's loop.
type attacher struct {
	Attacher
	srv *apiserver.Server
	g   *loop.Group
	// failed counts what failed so far.
	failed int
	// seen are the VolumeAttachments that it acts on, deleted those it lets go of.
	seen, deleted map[string]bool
	failure       func(error)
}

// StartAttacher has an attacher run from now on. failure is told what should not be.
func StartAttacher(srv *apiserver.Server, o Attacher, failure func(error)) {
	a := &attacher{Attacher: o, srv: srv, g: srv.Loop().NewGroup("attacher"), seen: map[string]bool{}, deleted: map[string]bool{}, failure: failure}
	srv.OnChange(func(ch apiserver.Change) {
		va := ch.New.(*storagev1.VolumeAttachment)
		switch {
		case va.Spec.Attacher != o.Driver:
		case ch.Type == watch.Deleted:
			delete(a.seen, va.Name)
			delete(a.deleted, va.Name)
		case va.DeletionTimestamp != nil && !a.deleted[va.Name]:
			a.deleted[va.Name] = true
			a.g.After(a.Detach, func() { a.change(va.Name, a.letGo) })
		case !a.seen[va.Name]:
			a.seen[va.Name] = true
			a.g.After(0, func() { a.change(va.Name, a.take) })
			a.try(va.Name)
		}
	}, apiserver.KindVolumeAttachment)
}

func (a *attacher) finalizer() string {
	return "external-attacher/" + strings.ReplaceAll(a.Driver, ".", "-")
}

// change writes a VolumeAttachment as do has it, which returns the subresource.
func (a *attacher) change(name string, do func(va *storagev1.VolumeAttachment) string) {
	va, ok := a.srv.Store().Lookup(apiserver.KindVolumeAttachment, "", name).(*storagev1.VolumeAttachment)
	if !ok {
		return
	}
	va = va.DeepCopy()
	if _, err := a.srv.Update(va, do(va)); err != nil {
		a.failure(err)
	}
}

func (a *attacher) take(va *storagev1.VolumeAttachment) string {
	va.Finalizers = append(va.Finalizers, a.finalizer())
	return ""
}

func (a *attacher) letGo(va *storagev1.VolumeAttachment) string {
	va.Finalizers = slices.DeleteFunc(va.Finalizers, func(f string) bool { return f == a.finalizer() })
	return ""
}

// try attaches a volume after the time that it takes, or fails and tries again.
func (a *attacher) try(name string) {
	a.g.After(a.Attach, func() {
		again := false
		a.change(name, func(va *storagev1.VolumeAttachment) string {
			if va.DeletionTimestamp != nil {
				return "status"
			}
			if again = a.failed < a.Fail; again {
				a.failed++
				va.Status.AttachError = &storagev1.VolumeError{Time: metav1.NewTime(a.srv.Loop().Now().Truncate(time.Second)), Message: "scripted: attach refused"}
				return "status"
			}
			va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: a.Metadata}
			return "status"
		})
		if again {
			a.try(name)
		}
	})
}
