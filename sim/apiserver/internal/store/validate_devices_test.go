package store

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func decoded(t *testing.T, manifest string) kind.Object {
	t.Helper()
	obj, err := kinds.New(features.Gates{}).Decode([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestDevicesRefused holds what is refused of kinds around devices, and how.
func TestDevicesRefused(t *testing.T) {
	claim := func(s string) string {
		return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: x}\nspec: {devices: {" + s + "}}"
	}
	class := func(s string) string {
		return "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: x}\nspec: {" + s + "}"
	}
	slice := func(s string) string {
		return "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: x}\nspec: {driver: d, pool: {name: p, resourceSliceCount: 1}, " + s + "}"
	}
	device := func(s string) string { return slice("nodeName: m, devices: [{name: g, " + s + "}]") }
	const one = "requests: [{name: r, exactly: {deviceClassName: c}}], "
	for _, tc := range []struct{ name, manifest, want string }{
		{"claim", claim("requests: [{name: r, exactly: {deviceClassName: c}}]"), ""},
		{"alternatives", claim("requests: [{name: r, firstAvailable: [{name: a, deviceClassName: c}, {name: a, deviceClassName: d}]}]"), `spec.devices.requests[0].firstAvailable[1]: Duplicate value: "a"`},
		{"both forms", claim("requests: [{name: r, exactly: {deviceClassName: c}, firstAvailable: [{name: a, deviceClassName: c}]}]"), "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"},
		{"all of so many", claim("requests: [{name: r, exactly: {deviceClassName: c, allocationMode: All, count: 2}}]"), "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"},
		{"constraint of an alternative", claim("requests: [{name: r, firstAvailable: [{name: a, deviceClassName: c}]}], constraints: [{requests: [r/a], matchAttribute: d/x}]"), ""},
		{"constraint of nothing", claim(one + "constraints: [{requests: [r]}]"), `spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required`},
		{"constraint of another", claim(one + "constraints: [{requests: [r/a], matchAttribute: d/x}]"), `spec.devices.constraints[0].requests[0]: Invalid value: "r/a": must be the name of a request in the claim`},
		{"config of no object", claim(one + "config: [{opaque: {driver: d, parameters: [1]}}]"), "spec.devices.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid JSON object"},
		{"toleration", claim("requests: [{name: r, exactly: {deviceClassName: c, tolerations: [{operator: Exists, value: v}]}}]"), "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"v\": must be empty for operator `Exists`"},
		{"admin access", claim("requests: [{name: r, exactly: {deviceClassName: c, adminAccess: true}}]"), "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"},
		{"selector", class(`selectors: [{cel: {expression: "device.attributes['d'].x == 1"}}]`), ""},
		{"selector of a number", class(`selectors: [{cel: {expression: "1"}}]`), `spec.selectors[0].cel.expression: Invalid value: "1": must evaluate to bool or the unknown type, not int`},
		{"resource of a class", class("extendedResourceName: cpu"), `spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name`},
		{"nowhere", slice("devices: []"), "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"},
		{"everywhere and somewhere", slice("allNodes: true, nodeName: m"), "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of"},
		{"attribute", device("attributes: {a: {string: x, int: 1}}"), `spec.devices[0].attributes[a]: Invalid value: {"IntValue":1,"BoolValue":null,"StringValue":"x"`},
		{"version", device("attributes: {a: {version: '1'}}"), `spec.devices[0].attributes[a].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`},
		{"policy of one claim's", device("capacity: {m: {value: 1Gi, requestPolicy: {default: 1Mi, validValues: [1Mi]}}}"), "spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"},
		{"values", device("allowMultipleAllocations: true, capacity: {m: {value: 1Gi, requestPolicy: {default: 1Mi, validValues: [2Gi]}}}"), `spec.devices[0].capacity[m].requestPolicy.validValues[0]: Invalid value: "2Gi": option is larger than capacity value: 1Gi`},
		{"range", device("allowMultipleAllocations: true, capacity: {m: {value: 1Gi, requestPolicy: {default: 1Mi, validRange: {min: 2Mi}}}}"), `spec.devices[0].capacity[m].requestPolicy.validRange.min: Invalid value: "1Mi": default is less than min: 2Mi`},
		{"taint", device("taints: [{key: k, effect: Never}]"), `spec.devices[0].taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`},
		{"place of a device", device("allNodes: true"), "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true"},
		{"counters", slice("nodeName: m, sharedCounters: [{name: c}]"), "spec.sharedCounters[0].counters: Required value"},
		{"bindings", device("bindingConditions: [a], bindingFailureConditions: [a]"), `spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(Options{}).Create(t0, decoded(t, tc.manifest))
			check(t, err, tc.want)
		})
	}
}

// TestDeviceTaintTime: the API notes since when a device has a taint.
func TestDeviceTaintTime(t *testing.T) {
	s := New(Options{})
	obj, err := s.Create(t0, decoded(t, "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: x}\nspec: {driver: d, pool: {name: p, resourceSliceCount: 1}, allNodes: true, devices: [{name: g, taints: [{key: k, effect: NoSchedule}]}]}"))
	if err != nil {
		t.Fatal(err)
	}
	if at := obj.(*resourcev1.ResourceSlice).Spec.Devices[0].Taints[0].TimeAdded; at == nil || !at.Time.Equal(t0.Truncate(time.Second)) {
		t.Errorf("taint since %v, want %v", at, t0)
	}
}

// TestClaimAdmission: the newest default class is given to claims that name none, and
// only claims of classes that allow it grow.
func TestClaimAdmission(t *testing.T) {
	s := New(Options{})
	create := func(now time.Time, manifest string) kind.Object {
		t.Helper()
		obj, err := s.Create(now, decoded(t, manifest))
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	const isDefault = "annotations: {storageclass.kubernetes.io/is-default-class: 'true'}"
	create(t0, "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: old, "+isDefault+"}\nprovisioner: p")
	create(t0.Add(time.Hour), "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: new, "+isDefault+"}\nprovisioner: p\nallowVolumeExpansion: true")
	create(t0.Add(2*time.Hour), "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: other}\nprovisioner: p")
	for _, tc := range []struct{ spec, class, grow string }{
		{"", "new", ""},
		{"storageClassName: '', ", "", "only dynamically provisioned pvc can be resized"},
		{"storageClassName: other, ", "other", "the storageclass that provisions the pvc must support resize"},
	} {
		name := "c" + tc.class
		c := create(t0, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: "+name+"}\nspec: {"+tc.spec+"accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}").DeepCopyObject().(*v1.PersistentVolumeClaim)
		if c.Spec.StorageClassName == nil || *c.Spec.StorageClassName != tc.class || len(c.Finalizers) != 1 {
			t.Errorf("{%s}: class %v, finalizers %v; want %q and one", tc.spec, c.Spec.StorageClassName, c.Finalizers, tc.class)
		}
		c.Status.Phase = v1.ClaimBound
		obj, err := s.Update(t0, c, "status")
		if err != nil {
			t.Fatal(err)
		}
		c = obj.DeepCopyObject().(*v1.PersistentVolumeClaim)
		q := c.Spec.Resources.Requests[v1.ResourceStorage]
		q.Add(q)
		c.Spec.Resources.Requests[v1.ResourceStorage] = q
		_, err = s.Update(t0, c, "")
		check(t, err, tc.grow)
	}
}
