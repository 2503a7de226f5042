package document

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// refusedByAPI is what the simulated API would refuse of an object, for the
// object's own sake.
func refusedByAPI(o runtime.Object) field.ErrorList {
	obj, ok := o.(apiserver.Object)
	if !ok {
		return nil
	}
	return decode.FieldErrors(apiserver.NewKinds().Validate(obj))
}

// refusedByKubelet is what the simulated kubelet would refuse of its
// configuration.
func refusedByKubelet(c *kubeletconfig.KubeletConfiguration) field.ErrorList {
	kubeletcfg.SetDefaults(c)
	return decode.FieldErrors(kubeletcfg.Validate(c))
}
