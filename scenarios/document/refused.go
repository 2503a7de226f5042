package document

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// refusedByAPI is what the simulated API with those gates would refuse of an object, for
// the object's own sake.
func refusedByAPI(o runtime.Object, on apiserver.Gates) field.ErrorList {
	obj, ok := o.(apiserver.Object)
	if !ok {
		return nil
	}
	kinds := apiserver.NewKindsWith(on)
	if kinds.Of(obj) == nil {
		kind := apiserver.NewKindsWith(apiserver.AllGates()).Of(obj)
		if kind == nil {
			return decode.FieldErrors(kinds.Validate(obj))
		}
		return field.ErrorList{field.Forbidden(field.NewPath("kind"), fmt.Sprintf("the API serves %s with the feature gate %s only (spec.api.featureGates)", kind.Kind, apiserver.GateOfKind(kind.Kind)))}
	}
	return decode.FieldErrors(kinds.Validate(obj))
}

// refusedByKubelet is what the simulated kubelet would refuse of its
// configuration.
func refusedByKubelet(c *kubeletconfig.KubeletConfiguration) field.ErrorList {
	kubeletcfg.SetDefaults(c)
	return decode.FieldErrors(kubeletcfg.Validate(c))
}
