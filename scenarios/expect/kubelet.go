package expect

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// HTTPAnswer is what a kubelet's server said.
type HTTPAnswer struct {
	// Code is 0 if nobody answered, or was not asked.
	Code int64  `json:"code"`
	Body string `json:"body"`
}

// KubeletState is a State that knows what kubelets say. It is asked by expectations of the
// form At only, when Advance judges them.
type KubeletState interface {
	// Logs is what a pod's container wrote, of its last run; "" if it is not there.
	Logs(namespace, pod, container string) string
	// HTTP is the answer to the last get of a path by the timeline; nil: there was none.
	HTTP(node, path string) *HTTPAnswer
	// Metric is the sum of a metric's samples that have all of the labels.
	Metric(node, name string, labels map[string]string) float64
}

// logs is the function of that name.
func (s *view) logs(args []ref.Val) ref.Val {
	k := podKey(text(args[0]))
	if c, ok := s.state.(KubeletState); ok {
		return types.String(c.Logs(k.ns, k.name, text(args[1])))
	}
	return types.String("")
}

// http is the function of that name.
func (s *view) http(args []ref.Val) ref.Val {
	if c, ok := s.state.(KubeletState); ok {
		if a := c.HTTP(text(args[0]), text(args[1])); a != nil {
			return s.ts.NativeToValue(a)
		}
	}
	return s.ts.NativeToValue(&HTTPAnswer{})
}

// labelsType is what a map of labels is in Go.
var labelsType = reflect.TypeFor[map[string]string]()

// metric and metricOf are the function metric, without and with labels.
func (s *view) metric(args []ref.Val) ref.Val { return s.sample(args, nil) }

func (s *view) metricOf(args []ref.Val) ref.Val {
	labels, err := args[2].ConvertToNative(labelsType)
	if err != nil {
		return types.WrapErr(err)
	}
	return s.sample(args, labels.(map[string]string))
}

func (s *view) sample(args []ref.Val, labels map[string]string) ref.Val {
	if c, ok := s.state.(KubeletState); ok {
		return types.Double(c.Metric(text(args[0]), text(args[1]), labels))
	}
	return types.Double(0)
}
