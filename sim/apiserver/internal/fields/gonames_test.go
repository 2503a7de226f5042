package fields

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGoNames(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"fields that are not set", storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv1")}, `{"PersistentVolumeName":"pv1","InlineVolumeSpec":null}`},
		{"embedded structs", &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Key: "k"}, `{"Name":"s","Key":"k","Optional":null}`},
		{"quantities, in order", v1.ResourceList{"storage": resource.MustParse("1Gi"), "cpu": resource.MustParse("2")}, `{"cpu":"2","storage":"1Gi"}`},
		{"what the host shares", security(t), `{"HostNetwork":false,"HostPID":true,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":1,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null}`},
		{"lists", []v1.TypedLocalObjectReference{{Kind: "A"}, {Name: "b"}}, `[{"APIGroup":null,"Kind":"A","Name":""},{"APIGroup":null,"Kind":"","Name":"b"}]`},
		{"types of apimachinery", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, `{"matchLabels":{"a":"b"}}`},
		{"bytes", v1.Secret{}.Data, `null`},
		{"what is simple", "x", `"x"`},
	} {
		got, err := json.Marshal(GoNames(c.v))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// security is the security context of a pod's spec as it is printed.
func security(t *testing.T) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(GoNames(v1.PodSpec{HostPID: true, SecurityContext: &v1.PodSecurityContext{RunAsUser: new(int64(1))}}))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m["HostPID"] != nil || string(m["Volumes"]) != "null" {
		t.Errorf("spec: %s", text)
	}
	return m["SecurityContext"]
}
