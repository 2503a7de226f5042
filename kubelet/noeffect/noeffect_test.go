package noeffect

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

func TestFieldsExist(t *testing.T) {
	for _, f := range append(always(), inSimulations()...) {
		if !hasField(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), strings.Split(f.path, ".")) {
			t.Errorf("there is no field %s", f.path)
		}
	}
}

func hasField(t reflect.Type, path []string) bool {
	if len(path) == 0 {
		return true
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == path[0] {
			return hasField(t.Field(i).Type, path[1:])
		}
	}
	return false
}

func TestTold(t *testing.T) {
	base := &kubeletconfig.KubeletConfiguration{HealthzPort: ptr.To[int32](10248), IPTablesDropBit: ptr.To[int32](15), EnableDebuggingHandlers: ptr.To(true)}
	if got := ToldOfSimulation(base, base); got != nil {
		t.Errorf("of the defaults: %v", got)
	}
	c := base.DeepCopy()
	c.MaxPods = 7 // it counts
	c.EnableDebuggingHandlers = ptr.To(false)
	c.IPTablesDropBit = ptr.To[int32](3)
	c.Authentication.X509.ClientCAFile = "/ca.crt"
	c.HealthzPort = ptr.To[int32](1)
	c.FeatureGates = map[string]bool{"CRIListStreaming": true}
	want := []string{
		`iptablesDropBit: 3 has no effect: it has none in upstream's kubelet either`,
		`featureGates: CRIListStreaming=true has no effect: this kubelet has what is on by default`,
	}
	if got := Told(c, base); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	want = slices.Insert(want, 1, "healthzPort: 1 has no effect: a simulated kubelet serves no health checks",
		`authentication.x509.clientCAFile: "/ca.crt" has no effect: a simulated kubelet is asked without a socket`)
	if got := ToldOfSimulation(c, base); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
