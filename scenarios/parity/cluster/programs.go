package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// The annotations by which a recorded pod says what its node does with it.
const (
	annotationStart    = "hollow/start"     // seconds from the binding to Running
	annotationReady    = "hollow/ready"     // seconds from there to Ready, or "never"
	annotationRun      = "hollow/run"       // a list of T:C, after how long containers exit with what
	annotationRunIndex = "hollow/run-index" // the same by completion index, as JSON
	annotationStop     = "hollow/stop"      // seconds from the deletion to the exit
	annotationStopCode = "hollow/stop-code" // what with
)

// readyPort is where a container listens once it is to be ready, for the readiness probe that a
// replay gives pods which say when that is: a kubelet knows no other way.
const readyPort = 4

// programs says what the containers of a replay do. It hears of every change of a pod, and is asked
// when a container starts, which is later.
type programs struct {
	pods   map[types.UID]*podProgram
	counts map[podGroup]int
}

// podGroup is what pods are numbered in: those of an owner and, if they have one, an index.
type podGroup struct {
	owner types.UID
	index string
}

// podProgram is a pod that was bound, as what there is to be known of it was then.
type podProgram struct {
	pod    *v1.Pod
	number int // among its group, in order of being bound
}

func newPrograms() *programs {
	return &programs{pods: map[types.UID]*podProgram{}, counts: map[podGroup]int{}}
}

// see notes pods that are bound.
func (p *programs) see(c apiserver.Change) {
	pod, ok := c.New.(*v1.Pod)
	if !ok || pod.Spec.NodeName == "" || p.pods[pod.UID] != nil {
		return
	}
	g := podGroup{owner: pod.UID, index: completionIndex(pod)}
	if ref := metav1.GetControllerOf(pod); ref != nil {
		g.owner = ref.UID
	}
	p.pods[pod.UID] = &podProgram{pod: pod, number: p.counts[g]}
	p.counts[g]++
}

// behave is what a container does, for [fakecri.Options.Behave].
func (p *programs) behave(sandbox *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	known := p.pods[types.UID(sandbox.GetMetadata().GetUid())]
	if known == nil {
		return nil
	}
	pod, name := known.pod, container.GetMetadata().GetName()
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name && (c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways) {
			return &fakecri.Behaviour{RunFor: fakecri.Exactly(time.Millisecond)}
		}
	}
	b := &fakecri.Behaviour{OnTerm: fakecri.OnTerm{
		Exit:  int32(numberOf(pod, annotationStopCode, 0)),
		After: fakecri.Exactly(seconds(numberOf(pod, annotationStop, 1))),
	}}
	if ready, given := pod.Annotations[annotationReady]; given {
		b.Ports = []fakecri.Port{}
		if ready != "never" {
			b.Ports = append(b.Ports, fakecri.Port{Port: readyPort, After: seconds(numberOf(pod, annotationReady, 0))})
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			// A sidecar runs. It is stopped after the others, which had taken the time.
			b.OnTerm.After = fakecri.Range{}
			return b
		}
	}
	entry := int(container.GetMetadata().GetAttempt())
	if pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		entry = known.number
	}
	if after, code, ends := runOf(pod, entry); ends {
		b.RunFor, b.ExitCode = fakecri.Exactly(max(after, time.Millisecond)), code
	}
	return b
}

// runOf reads the entry of a pod's list of runs: after how long its containers exit, and with what.
// The last entry goes for all after it.
func runOf(pod *v1.Pod, entry int) (after time.Duration, code int32, ends bool) {
	runs := pod.Annotations[annotationRun]
	if byIndex := pod.Annotations[annotationRunIndex]; byIndex != "" {
		var m map[string]string
		if json.Unmarshal([]byte(byIndex), &m) == nil {
			if r, ok := m[completionIndex(pod)]; ok {
				runs = r
			}
		}
	}
	if runs == "" {
		return 0, 0, false
	}
	all := strings.Split(runs, ",")
	after0, code0, ok := strings.Cut(strings.TrimSpace(all[min(entry, len(all)-1)]), ":")
	if !ok { // "-"
		return 0, 0, false
	}
	t, err := strconv.ParseFloat(after0, 64)
	n, err2 := strconv.ParseInt(code0, 10, 32)
	return seconds(t), int32(n), err == nil && err2 == nil
}

// completionIndex is a pod's index in its Job, "" if it has none.
func completionIndex(pod *v1.Pod) string {
	return pod.Annotations[batchv1.JobCompletionIndexAnnotation]
}

// numberOf reads an annotation that is a number.
func numberOf(pod *v1.Pod, annotation string, otherwise float64) float64 {
	if n, err := strconv.ParseFloat(pod.Annotations[annotation], 64); err == nil {
		return n
	}
	return otherwise
}

// images are those that the case's objects name. One ending in :bad can't be pulled, the others are
// there.
func (c *Case) images() []fakecri.Image {
	var names []string
	c.eachContainer(func(container object) {
		if n := text(container, "image"); n != "" {
			names = append(names, n)
		}
	})
	slices.Sort(names)
	names = slices.Compact(names)
	var out []fakecri.Image
	for _, n := range names {
		if strings.HasSuffix(n, ":bad") {
			out = append(out, fakecri.Image{Name: n, Fail: &fakecri.PullFailure{Code: "NotFound", Message: fmt.Sprintf("%s: not found", n)}})
			continue
		}
		out = append(out, fakecri.Image{Name: n, Present: true})
	}
	return out
}

// slowStarts are what makes pods that say so run later than others: making their sandboxes takes the
// time.
func (c *Case) slowStarts() []fakecri.Fault {
	var out []fakecri.Fault
	for i := range c.Actions {
		var o object
		if json.Unmarshal(c.Actions[i].Object, &o) != nil {
			continue
		}
		start := ""
		walk(o, func(m object) {
			if s := text(child(m, "annotations"), annotationStart); s != "" {
				start = s
			}
		})
		if t, err := strconv.ParseFloat(start, 64); err == nil && t > 1 {
			meta := child(o, "metadata")
			ns := text(meta, "namespace")
			if ns == "" {
				ns = recordedNamespace
			}
			out = append(out, fakecri.Fault{Name: "slow start", Method: "RunPodSandbox", Pod: ns + "/" + text(meta, "name") + "*", Latency: fakecri.Exactly(seconds(t - 1))})
		}
	}
	return out
}

// probed reports whether the case says of any pod when it is ready.
func (c *Case) probed() bool {
	found := false
	for i := range c.Actions {
		a := &c.Actions[i]
		for _, raw := range []json.RawMessage{a.Object, a.Patch} {
			found = found || strings.Contains(string(raw), annotationReady)
		}
	}
	return found
}

// addProbes gives every container of an object or a patch a readiness probe each second, unless it
// has one.
func addProbes(data json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return data
	}
	walk(v, func(m object) {
		for _, c := range children(m, "containers") {
			if text(c, "name") != "" && !has(c, "readinessProbe") {
				c["readinessProbe"] = object{"tcpSocket": object{"port": readyPort}, "periodSeconds": 1}
			}
		}
	})
	out, err := json.Marshal(v)
	if err != nil {
		return data
	}
	return out
}

// eachContainer calls fn for each container that an action's object or patch has.
func (c *Case) eachContainer(fn func(container object)) {
	for i := range c.Actions {
		a := &c.Actions[i]
		for _, raw := range []json.RawMessage{a.Object, a.Patch} {
			var v any
			if json.Unmarshal(raw, &v) != nil {
				continue
			}
			walk(v, func(m object) {
				for _, k := range []string{"containers", "initContainers"} {
					for _, x := range children(m, k) {
						fn(x)
					}
				}
				if v, ok := m["value"].(string); ok { // of a JSON patch, that may be an image
					fn(object{"image": v})
				}
			})
		}
	}
}

// walk calls fn for every object in a value.
func walk(v any, fn func(object)) {
	switch v := v.(type) {
	case object:
		fn(v)
		for _, k := range decode.SortedKeys(v) {
			walk(v[k], fn)
		}
	case []any:
		for _, x := range v {
			walk(x, fn)
		}
	}
}
