package scale

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/scenarios"
)

// What GPUs of Alibaba's trace become: an extended resource in thousandths of a
// GPU, devices of a plugin, and a label of the node.
const (
	// Kubernetes has no fractions of extended resources, hence thousandths.
	ResourceGPUMilli = "alibabacloud.com/gpu-milli"
	// Pods with whole GPUs get them of a device plugin, too.
	ResourceGPU   = "alibabacloud.com/gpu-count"
	LabelGPUModel = "alibabacloud.com/gpu-card-model"
	LabelQOS      = "alibabacloud.com/qos"
)

// openb reads a row of Alibaba's cluster-trace-gpu-v2023 (openb_pod_list_*.csv).
// A GPU that is shared counts by its thousandths, wherever on the node they are. Requests of 0
// GPUs are most rows. A shared GPU's share is gpu_milli; whole ones have 1000 each.
func (p *traceParser) openb() (row, bool) {
	before := len(p.errs)
	r := row{}
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	if n, ok := p.whole("cpu_milli", 1e9); ok && n > 0 {
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity(n, resource.DecimalSI)
	}
	if n, ok := p.whole("memory_mib", 1e9); ok && n > 0 {
		requests[v1.ResourceMemory] = *resource.NewQuantity(n<<20, resource.BinarySI)
	}
	if n, ok := p.whole("num_gpu", 1000); ok && n > 0 {
		milli := int64(1000)
		if m, ok := p.whole("gpu_milli", 1000); ok && m > 0 {
			milli = m
		}
		q := *resource.NewQuantity(n*milli, resource.DecimalSI)
		requests[ResourceGPUMilli], limits[ResourceGPUMilli] = q, q
		if milli == 1000 {
			whole := *resource.NewQuantity(n, resource.DecimalSI)
			requests[ResourceGPU], limits[ResourceGPU] = whole, whole
		}
	}
	qos := p.cell("qos")
	// The trace's qos is kept as a label in any case, since a pod's own QoS class follows from
	// its requests and limits.
	if qos == "Guaranteed" {
		limits = requests
	}
	var labels map[string]string
	if qos != "" {
		if len(validation.IsValidLabelValue(qos)) > 0 {
			p.bad("qos", "%q can be no label's value", qos)
		}
		labels = map[string]string{LabelQOS: qos}
	}
	p.openbTimes(&r)
	r.shape = p.shape(shape{requests: requests, limits: limits, labels: labels, affinity: p.gpuAffinity()}, p.cell("gpu_spec"))
	r.name = p.name(&r)
	return r, len(p.errs) == before
}

// openbTimes maps creation, scheduling and deletion. What succeeded or failed
// exited by itself, having run since it was scheduled; what did not was deleted.
// The trace says when a pod was scheduled and when it was gone, not how long it
// ran. Times are seconds since the trace's beginning. Scheduling is done by this simulation
// again; the recorded time serves only to tell waiting from running.
func (p *traceParser) openbTimes(r *row) {
	r.arrival, _ = p.time("creation_time")
	if p.cell("creation_time") == "" {
		p.bad("creation_time", "must be set")
	}
	deleted, ok := p.time("deletion_time")
	if !ok {
		return
	}
	if deleted < r.arrival {
		p.bad("deletion_time", "is before creation_time")
		return
	}
	ran := r.arrival
	// Some rows have scheduling times that make no sense; for them creation stands.
	if scheduled, ok := p.time("scheduled_time"); ok && scheduled >= r.arrival && scheduled <= deleted {
		ran = scheduled
	}
	switch phase := p.cell("pod_phase"); phase {
	case "Succeeded", "Failed":
		r.runFor = max(deleted-ran, time.Millisecond)
		if phase == "Failed" {
			r.exit = 1
		}
	case "", "Running", "Pending", "Unknown":
		r.lifetime = max(deleted-r.arrival, time.Millisecond)
	default:
		p.bad("pod_phase", "%q is none of Pending, Running, Succeeded, Failed", phase)
	}
}

// gpuAffinity is that to the models that gpu_spec lists ("V100M16|V100M32"). A required node
// affinity: the pod runs on one of these models or not at all. The bar may be escaped in the
// file, as in a pattern.
func (p *traceParser) gpuAffinity() *v1.Affinity {
	spec := p.cell("gpu_spec")
	if spec == "" {
		return nil
	}
	models := strings.Split(strings.ReplaceAll(spec, `\|`, "|"), "|")
	for _, m := range models {
		if len(validation.IsValidLabelValue(m)) > 0 {
			p.bad("gpu_spec", "%q can be no label's value", m)
			return nil
		}
	}
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: LabelGPUModel, Operator: v1.NodeSelectorOpIn, Values: models}}}},
	}}}
}

// ReadTraceNodes reads the nodes of Alibaba's cluster-trace-gpu-v2023
// (openb_node_list_*.csv: sn, cpu_milli, memory_mib, gpu, model). Equal nodes are
// one shape, whose weight is how many there are. The second result is how many nodes there are,
// which is what --nodes defaults to. The first mistake ends it: such a file has few lines.
func ReadTraceNodes(file string, in io.Reader) ([]NodeShape, int, error) {
	p, lerr := newTraceParser(file, in)
	if lerr != nil {
		return nil, 0, scenarios.LoadErrors{lerr}
	}
	rec := p.rec
	for _, c := range []string{"sn", "cpu_milli", "memory_mib"} {
		if _, ok := p.columns[c]; !ok {
			return nil, 0, scenarios.LoadErrors{fileError(file, 1, "%s: the column is missing", c)}
		}
	}
	type kind struct {
		cpu, memory, gpus int64
		model             string
	}
	count, order := map[kind]int{}, []kind{}
	total := 0
	for {
		var err error
		p.cells, err = rec.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, scenarios.LoadErrors{fileError(file, 0, "%v", err)}
		}
		k := kind{model: p.cell("model")}
		k.cpu, _ = p.whole("cpu_milli", 1e9)
		k.memory, _ = p.whole("memory_mib", 1e9)
		k.gpus, _ = p.whole("gpu", 1000)
		if len(p.errs) > 0 {
			return nil, 0, p.errs
		}
		if k.cpu == 0 || k.memory == 0 {
			return nil, 0, scenarios.LoadErrors{cellError(file, rec, p.columns["cpu_milli"], "cpu_milli, memory_mib", "must be more than 0")}
		}
		if count[k] == 0 {
			order = append(order, k)
		}
		count[k]++
		total++
	}
	if total == 0 {
		return nil, 0, scenarios.LoadErrors{fileError(file, 0, "there are no nodes in this file")}
	}
	// The commonest shape is node group 0, whatever the file's order; equal counts stay in it.
	slices.SortStableFunc(order, func(a, b kind) int { return count[b] - count[a] })
	var out []NodeShape
	for i, k := range order {
		s := NodeShape{Name: fmt.Sprintf("openb-%d", i), Weight: new(float64(count[k])), Capacity: v1.ResourceList{
			v1.ResourceCPU: *resource.NewMilliQuantity(k.cpu, resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(k.memory<<20, resource.BinarySI),
		}}
		if k.gpus > 0 {
			s.Capacity[ResourceGPUMilli] = *resource.NewQuantity(k.gpus*1000, resource.DecimalSI)
			s.Devices = []scenarios.Devices{{Resource: ResourceGPU, Count: int(k.gpus)}}
		}
		if k.model != "" {
			s.Labels = map[string]string{LabelGPUModel: k.model}
		}
		out = append(out, s)
	}
	return out, total, nil
}
