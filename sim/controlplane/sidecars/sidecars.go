// Package sidecars stands for the sidecars that run beside the controller service of a driver
// of CSI: external-provisioner v6, external-attacher v4 and external-resizer v2. It has what
// users see of them: objects, annotations, finalizers, events and back-off.
//
// # How it differs
//
// There is one replica of each, without leader election. Snapshots, clones and
// VolumeAttributesClasses are not there. An event's source is the driver's name with that of
// the sidecar.
package sidecars

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// The sidecars' clients (--kube-api-qps, with twice as much for --kube-api-burst), and their back-off
// (--retry-interval-start, --retry-interval-max).
const (
	clientQPS  = 5.0
	retryStart = time.Second
	retryMax   = 5 * time.Minute
	workers    = 10
)

// Driver is the controller service of a driver. Errors are gRPC statuses.
type Driver interface {
	// DriverName is the name of the driver.
	DriverName() string
	// TopologyKey is the label that says in which zone a node is; "": there are no zones.
	TopologyKey() string
	// Free is how many bytes each zone has left that has an end; nil: nobody is told.
	Free() map[string]int64
	// CreateVolume makes a volume of a size in bytes, in the first of some zones that has
	// room, and returns which.
	CreateVolume(ctx context.Context, handle string, size int64, zones []string) (string, error)
	DeleteVolume(ctx context.Context, handle string) error
	AttachVolume(ctx context.Context, handle, node string) error
	DetachVolume(ctx context.Context, handle, node string) error
	// ExpandVolume makes a volume larger, one that may be a block device, and says whether the node
	// has to do so, too.
	ExpandVolume(ctx context.Context, handle string, block bool, size int64) (onNode bool, err error)
}

// Options are what sidecars are made of.
type Options struct {
	// Group is what they die with, on the API's loop.
	Group  *loop.Group
	Server *apiserver.Server
	Driver Driver
	// QPS is how many requests each of them sends in a second, twice as many at once; 0 means
	// clientQPS.
	QPS float64
}

// Start starts a driver's sidecars.
func Start(o Options) {
	o.QPS = cmp.Or(o.QPS, clientQPS)
	p := newSidecar(&o, "csi-provisioner")
	startProvisioner(p)
	startCapacity(p)
	startAttacher(newSidecar(&o, "csi-attacher"))
	startResizer(newSidecar(&o, "csi-resizer"))
}

// sidecar is what all have.
type sidecar struct {
	g        *loop.Group
	api      *apiserver.Component
	recorder *record.Recorder
	driver   Driver
}

func newSidecar(o *Options, name string) *sidecar {
	name = o.Driver.DriverName() + "_" + name
	api := o.Server.Component(name, o.QPS, int(2*o.QPS))
	return &sidecar{g: o.Group, api: api, recorder: controller.NewRecorder(o.Group, api, name), driver: o.Driver}
}

func (s *sidecar) queue(name string, sync func(context.Context, controller.Key) error) *controller.Queue {
	return controller.NewQueue(controller.QueueOptions{
		Group: s.g, Name: name, Workers: workers, Delay: s.api.Delivery, Sync: sync, BaseDelay: retryStart, MaxDelay: retryMax, PerKeyOnly: true,
	})
}

func (s *sidecar) event(obj apiserver.Object, kind, reason, message string) {
	s.recorder.Event(controller.Reference(obj), kind, reason, message)
}

// finalizerOf is a sidecar's finalizer for a driver.
func (s *sidecar) finalizerOf(prefix string) string {
	return prefix + strings.ReplaceAll(s.driver.DriverName(), ".", "-")
}

// edit changes an object as it is now, again if somebody else is ahead; false: it is gone, or
// there is nothing to change.
func edit[T apiserver.Object](ctx context.Context, s *sidecar, kind apiserver.Kind, key controller.Key, sub string, change func(obj T) bool) (T, error) {
	for {
		obj, ok := controller.Lookup[T](s.api, kind, key)
		if !ok {
			var none T
			return none, nil
		}
		next := obj.DeepCopyObject().(T)
		if !change(next) {
			return obj, nil
		}
		is, err := controller.Update(ctx, s.api, next, sub)
		if err == nil {
			return is, nil
		}
		if !apierrors.IsConflict(err) {
			return is, fmt.Errorf("%s %s: %w", kind, key.Name, err)
		}
	}
}

// storage is the size that a list of resources has.
func storage(list v1.ResourceList) int64 {
	q := list[v1.ResourceStorage]
	return q.Value()
}
