package scenarios

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestRefusedByTheAPI loads what the API's own validation refuses.
func TestRefusedByTheAPI(t *testing.T) {
	opts := LoadOptions{ValidateObject: func(o runtime.Object) field.ErrorList {
		return FieldErrors(apiserver.NewKinds().Validate(o.(apiserver.Object)))
	}}
	for name, tt := range map[string]struct{ doc, want string }{
		"policy":     {podDoc("          restartPolicy: Sometimes\n          containers: [{name: a, image: b}]\n"), `f.yaml:14:26: spec.timeline[0].apply.manifest.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		"containers": {podDoc("          containers: []\n"), `f.yaml:14:11: spec.timeline[0].apply.manifest.spec.containers: Required value`},
		"same name":  {podDoc("          containers: [{name: a, image: b}, {name: a, image: c}]\n"), `f.yaml:14:52: spec.timeline[0].apply.manifest.spec.containers[1].name: Duplicate value: "a"`},
	} {
		_, err := Parse("f.yaml", []byte(head+tt.doc), opts)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, tt.want)
		}
	}
	if _, err := Load("testdata/full.yaml", opts); err != nil {
		t.Error(err)
	}
}
