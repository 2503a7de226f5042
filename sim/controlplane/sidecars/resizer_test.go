package sidecars

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// disks is a driver that expands volumes, or says why it does not.
type disks struct {
	Driver
	l *loop.Loop
	// err is what it says of a size in bytes.
	err   func(size int64) error
	calls []string
}

func (*disks) DriverName() string     { return "disks.example.com" }
func (*disks) TopologyKey() string    { return "" }
func (*disks) Free() map[string]int64 { return nil }

// ExpandVolume implements Driver.
func (d *disks) ExpandVolume(_ context.Context, _ string, _ bool, size int64) (bool, error) {
	d.calls = append(d.calls, fmt.Sprintf("%v:%dGi", d.l.Since(loop.Epoch()).Round(time.Second), size>>30))
	return false, d.err(size)
}

// TestResizing: when the driver is asked to expand a volume of 1Gi to 4Gi, for which the claim asks
// after a minute, and what the claim says in the end. One asks for 2Gi after five minutes.
func TestResizing(t *testing.T) {
	fails := func(code codes.Code) func(int64) error {
		return func(int64) error { return status.Error(code, "no") }
	}
	for _, tt := range []struct {
		name  string
		err   func(size int64) error
		less  bool
		calls string
		want  string // the size, and the one that is being reached
	}{
		{"done", func(int64) error { return nil }, false, "1m0s:4Gi", "4Gi"},
		{"the driver can't be reached", fails(codes.Unavailable), false,
			"1m0s:4Gi 1m0s:4Gi 1m1s:4Gi 1m5s:4Gi 1m13s:4Gi 1m29s:4Gi 2m1s:4Gi 3m5s:4Gi 5m13s:4Gi 9m29s:4Gi 14m29s:4Gi", "1Gi, 4Gi ControllerResizeInProgress"},
		{"infeasible", fails(codes.OutOfRange), false, "1m0s:4Gi 1m0s:4Gi 6m0s:4Gi 11m0s:4Gi 16m0s:4Gi", "1Gi, 4Gi ControllerResizeInfeasible"},
		{"infeasible, and then less", func(size int64) error {
			if size > 2<<30 {
				return status.Error(codes.OutOfRange, "no")
			}
			return nil
		}, true, "1m0s:4Gi 1m0s:4Gi 5m0s:2Gi", "2Gi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := loop.New(loop.Options{Name: "api", Seed: 5})
			t.Cleanup(l.Close)
			srv := apiserver.New(apiserver.Options{Loop: l})
			d := &disks{l: l, err: tt.err}
			Start(Options{Group: l.NewGroup("sidecars"), Server: srv, Driver: d})
			size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
			modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
			for _, o := range []apiserver.Object{
				&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: d.DriverName(), AllowVolumeExpansion: new(true)},
				&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{AccessModes: modes, Capacity: size, StorageClassName: "disks",
					PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: d.DriverName(), VolumeHandle: "1"}}}},
				&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{
					AccessModes: modes, VolumeName: "pv", StorageClassName: new("disks"), Resources: v1.VolumeResourceRequirements{Requests: size}}},
			} {
				if _, err := srv.Create(o); err != nil {
					t.Fatal(err)
				}
			}
			patch := func(sub, text string) {
				if _, err := srv.Patch(apiserver.KindPersistentVolumeClaim, "default", "data", types.MergePatchType, []byte(text), sub); err != nil {
					t.Fatal(err)
				}
			}
			run := func(d time.Duration) {
				if err := l.RunUntil(l.Now().Add(d)); err != nil {
					t.Fatal(err)
				}
			}
			patch("status", `{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}`)
			run(time.Minute)
			patch("", `{"spec":{"resources":{"requests":{"storage":"4Gi"}}}}`)
			run(4 * time.Minute)
			if tt.less {
				patch("", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
			}
			run(14 * time.Minute)
			claim := srv.Store().Lookup(apiserver.KindPersistentVolumeClaim, "default", "data").(*v1.PersistentVolumeClaim)
			got := claim.Status.Capacity.Storage().String()
			if state := claim.Status.AllocatedResourceStatuses[v1.ResourceStorage]; state != "" {
				got += fmt.Sprintf(", %v %s", claim.Status.AllocatedResources.Storage(), state)
			}
			if calls := strings.Join(d.calls, " "); calls != tt.calls || got != tt.want {
				t.Errorf("calls %s, want %s\nthen %s, want %s", calls, tt.calls, got, tt.want)
			}
		})
	}
}
