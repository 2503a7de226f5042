package kuberuntime

import (
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/runopts"
	"github.com/drydock-sim/drydock/kubelet/internal/util/expansion"
)

// expandAll replaces $(NAME) in a command line by the variables of env, which
// is sorted by name; what names none stays. A line without a $ is shared.
// Most lines have no $, so they are not copied.
func expandAll(list []string, env []*runtimeapi.KeyValue) []string {
	for i, s := range list {
		if strings.IndexByte(s, '$') < 0 {
			continue
		}
		lookup := func(name string) (string, bool) { return runopts.Lookup(env, name) }
		out := make([]string, len(list))
		copy(out, list[:i])
		for j := i; j < len(list); j++ {
			out[j] = expansion.Expand(list[j], lookup)
		}
		return out
	}
	return list
}
