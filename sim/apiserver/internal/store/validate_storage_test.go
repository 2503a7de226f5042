package store

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// TestStorageRefused holds what is refused of kinds around volumes, and how.
func TestStorageRefused(t *testing.T) {
	const (
		volume     = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\n"
		claim      = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\n"
		class      = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: x}\n"
		attributes = "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: x}\n"
		attachment = "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: x}\n"
		driver     = "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: x}\n"
		node       = "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: x}\n"
		capacity   = "apiVersion: storage.k8s.io/v1\nkind: CSIStorageCapacity\nmetadata: {name: x}\n"
	)
	pv := func(s string) string {
		return volume + "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], " + s + "}"
	}
	pvc := func(s string) string {
		return claim + "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, " + s + "}"
	}
	for _, tc := range []struct{ name, manifest, want string }{
		{"volume", pv("nfs: {server: a, path: /b}"), ""},
		{"no capacity", volume + "spec: {accessModes: [ReadWriteOnce], hostPath: {path: /a}}", `spec.capacity: Unsupported value: null: supported values: "storage"`},
		{"no size", volume + "spec: {capacity: {storage: 0}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}", `spec.capacity[storage]: Invalid value: "0": must be greater than zero`},
		{"access", volume + "spec: {capacity: {storage: 1}, accessModes: [Once], hostPath: {path: /a}}", `spec.accessModes: Unsupported value: "Once": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`},
		{"access for one pod and others", volume + "spec: {capacity: {storage: 1}, accessModes: [ReadWriteOncePod, ReadWriteOnce], hostPath: {path: /a}}", "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
		{"no source", pv("storageClassName: a"), "spec: Required value: must specify a volume type"},
		{"two sources", pv("hostPath: {path: /a}, nfs: {server: a, path: /b}"), "spec.nfs: Forbidden: may not specify more than 1 volume type"},
		{"relative export", pv("nfs: {server: a, path: b}"), `spec.nfs.path: Invalid value: "b": must be an absolute path`},
		{"backsteps", pv("hostPath: {path: /a/../b}"), `spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'`},
		{"local on no node", pv("local: {path: /a}"), "spec.nodeAffinity: Required value: Local volume requires node affinity"},
		{"no terms", pv("hostPath: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: []}}"), "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term"},
		{"value of a label", pv("hostPath: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: In, values: ['a b']}]}]}}"), `spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "a b"`},
		{"driver", pv("csi: {driver: A_b, volumeHandle: h}"), `spec.csi.driver: Invalid value: "A_b": a lowercase RFC 1123 subdomain`},
		{"secret of a driver", pv("csi: {driver: a, volumeHandle: h, nodePublishSecretRef: {name: s}}"), "spec.csi.nodePublishSecretRef.namespace: Required value"},
		{"reclaim policy", pv("hostPath: {path: /a}, persistentVolumeReclaimPolicy: Keep"), `spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", "Recycle", "Retain"`},
		{"recycled root", pv("hostPath: {path: /}, persistentVolumeReclaimPolicy: Recycle"), "may not be 'recycle' for a hostPath mount of '/'"},
		{"volume mode", pv("hostPath: {path: /a}, volumeMode: Tape"), `spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"`},
		{"iqn", pv("iscsi: {targetPortal: a, iqn: iqn.2001-04, lun: 0}"), `spec.iscsi.iqn: Invalid value: "iqn.2001-04": must be valid format`},
		{"good iqn", pv("iscsi: {targetPortal: a, iqn: 'iqn.2001-04.com.example:storage', lun: 0}"), ""},
		{"attributes without a driver", pv("hostPath: {path: /a}, volumeAttributesClassName: a"), "spec.csi: Required value: has to be specified when using volumeAttributesClassName"},

		{"claim", pvc("storageClassName: ''"), ""},
		{"claim of nothing", claim + "spec: {accessModes: [ReadWriteOnce]}", "spec.resources[storage]: Required value"},
		{"claim of less", claim + "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: -1Gi}}}", `spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero`},
		{"claim without modes", claim + "spec: {resources: {requests: {storage: 1Gi}}}", "spec.accessModes: Required value: at least 1 access mode is required"},
		{"source of data", pvc("dataSourceRef: {kind: Thing, name: a}"), `spec.dataSourceRef: Invalid value: "Thing": must be 'PersistentVolumeClaim' when referencing the default apiGroup`},
		{"two sources of data", pvc("dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: b}"), "spec: Invalid value: {}: must match dataSourceRef"},
		{"class of a claim", pvc("storageClassName: A"), `spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain`},

		{"class", class + "provisioner: example.com/a", ""},
		{"topologies", class + "provisioner: a\nallowedTopologies: [{matchLabelExpressions: [{key: z, values: [a, a]}]}]", `allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"`},
		{"the same topology", class + "provisioner: a\nallowedTopologies: [{matchLabelExpressions: [{key: z, values: [a]}]}, {matchLabelExpressions: [{key: z, values: [a]}]}]", `allowedTopologies[1].matchLabelExpressions: Duplicate value: ""`},
		{"empty parameter", class + "provisioner: a\nparameters: {'': b}", `parameters: Invalid value: "": field can not be empty.`},

		{"attributes", attributes + "driverName: a\nparameters: {iops: '1'}", ""},
		{"no attributes", attributes + "driverName: a", "parameters: Required value: must contain at least one key/value pair"},
		{"attributes of no driver", attributes + "parameters: {iops: '1'}", "driverName: Required value"},

		{"attachment of nothing", attachment + "spec: {attacher: a, nodeName: m, source: {}}", "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"},
		{"inline volume", attachment + "spec: {attacher: a, nodeName: m, source: {inlineVolumeSpec: {accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}}}}", ""},
		{"inline capacity", attachment + "spec: {attacher: a, nodeName: m, source: {inlineVolumeSpec: {capacity: {storage: 1}, accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}}}}", "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes"},

		{"driver's modes", driver + "spec: {volumeLifecycleModes: [Always]}", `spec.volumeLifecycleModes: Unsupported value: "Always": supported values: "Persistent", "Ephemeral"`},
		{"audience twice", driver + "spec: {tokenRequests: [{audience: a}, {audience: a}]}", `spec.tokenRequests[1].audience: Duplicate value: "a"`},
		{"short token", driver + "spec: {tokenRequests: [{audience: a, expirationSeconds: 1}]}", "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"},
		{"driver twice", node + "spec: {drivers: [{name: a, nodeID: b}, {name: a, nodeID: c}]}", `spec.drivers[1].name: Duplicate value: "a"`},
		{"no topology key", node + "spec: {drivers: [{name: a, nodeID: b, topologyKeys: ['']}]}", "spec.drivers[0]: Required value"},
		{"topology key twice", node + "spec: {drivers: [{name: a, nodeID: b, topologyKeys: [z, z]}]}", `spec.drivers[0]: Duplicate value: "z"`},
		{"negative count", node + "spec: {drivers: [{name: a, nodeID: b, allocatable: {count: -1}}]}", "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"},
		{"no class", capacity, `storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain`},
		{"negative capacity", capacity + "storageClassName: a\ncapacity: -1", `capacity: Invalid value: "-1": must be greater than or equal to 0`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			obj, err := kinds.New(features.Gates{}).Decode([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(Options{}).Create(t0, obj)
			check(t, err, tc.want)
		})
	}
}

// TestClaimUpdates: a claim stays what it was, but for its volume's name and, of one
// that is bound, its size.
func TestClaimUpdates(t *testing.T) {
	size := func(c *v1.PersistentVolumeClaim, q string) {
		c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(q)}
	}
	for _, tc := range []struct {
		name   string
		bound  bool
		change func(c *v1.PersistentVolumeClaim)
		want   string
	}{
		{"volume", false, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }, ""},
		{"another volume", true, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "w" }, "- \"VolumeName\": \"v\",\n+ \"VolumeName\": \"w\","},
		{"class that was left out", false, func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("a") }, ""},
		{"size", false, func(c *v1.PersistentVolumeClaim) { size(c, "2Gi") }, "spec is immutable after creation except resources.requests"},
		{"shrunk below what there is", true, func(c *v1.PersistentVolumeClaim) { size(c, "1Mi") }, "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
		{"mode", true, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(v1.PersistentVolumeBlock) }, `volumeMode: Invalid value: "Block": field is immutable`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			c := &v1.PersistentVolumeClaim{}
			c.Name, c.Namespace = "x", "default"
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
			size(c, "1Gi")
			obj, err := s.Create(t0, c)
			if err != nil {
				t.Fatal(err)
			}
			c = obj.DeepCopyObject().(*v1.PersistentVolumeClaim)
			if tc.bound {
				c.Spec.VolumeName = "v"
				obj, err = s.Update(t0, c, "")
				if err != nil {
					t.Fatal(err)
				}
				c = obj.DeepCopyObject().(*v1.PersistentVolumeClaim)
				c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}
				if obj, err = s.Update(t0, c, "status"); err != nil {
					t.Fatal(err)
				}
				c = obj.DeepCopyObject().(*v1.PersistentVolumeClaim)
			}
			tc.change(c)
			_, err = s.Update(t0, c, "")
			check(t, err, tc.want)
		})
	}
}

// TestVolumePhaseTime: the API notes when a volume's phase changes.
func TestVolumePhaseTime(t *testing.T) {
	s := New(Options{})
	obj, err := kinds.New(features.Gates{}).Decode([]byte("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(obj kind.Object, err error) (*v1.PersistentVolume, time.Time) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		pv := obj.DeepCopyObject().(*v1.PersistentVolume)
		return pv, pv.Status.LastPhaseTransitionTime.Time
	}
	pv, created := at(s.Create(t0, obj))
	pv.Status.Message = "a"
	pv, said := at(s.Update(t0.Add(time.Second), pv, "status"))
	pv.Status.Phase = v1.VolumeAvailable
	_, changed := at(s.Update(t0.Add(2*time.Second), pv, "status"))
	if !said.Equal(created) || changed.Sub(created) != 2*time.Second {
		t.Errorf("phase since %v, %v, %v; want the third 2 s later", created, said, changed)
	}
}
