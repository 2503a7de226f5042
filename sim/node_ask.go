package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// Answer is what a kubelet's server said. Code 0 means that nobody answered, Body is then
// why.
type Answer struct {
	Code int
	Body string
}

// maxAnswer is how much of an answer is kept, in bytes.
const maxAnswer = 1 << 20

// written is an answer that is being written.
type written struct {
	header http.Header
	code   int
	body   []byte
}

// Header implements http.ResponseWriter.
func (w *written) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *written) WriteHeader(code int) { w.code = cmp.Or(w.code, code) }

// Write implements http.ResponseWriter. What is too much is dropped.
func (w *written) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, b[:min(len(b), maxAnswer-len(w.body))]...)
	return len(b), nil
}

// Get asks the node's kubelet for a path and keeps the answer: see Answer. It is called on
// the node's loop, or between runs.
func (n *Node) Get(target string) error {
	r, err := http.NewRequest(http.MethodGet, "https://"+n.name+":10250"+target, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", target, err)
	}
	w := &written{header: http.Header{}}
	n.Serve(w, r, nil, func(err error) {
		a := Answer{Code: cmp.Or(w.code, http.StatusOK), Body: string(w.body)}
		if err != nil {
			a = Answer{Body: err.Error()}
		}
		if n.answers == nil {
			n.answers = map[string]Answer{}
		}
		n.answers[target] = a
		n.Note("node "+n.name, "answers", trace.Str("path", target), trace.Str("code", strconv.Itoa(a.Code)), trace.Str("bytes", strconv.Itoa(len(a.Body))))
	})
	return nil
}

// Answer returns what the kubelet said when it was last asked for a path by Get.
func (n *Node) Answer(target string) (a Answer, asked bool) {
	a, asked = n.answers[target]
	return a, asked
}

// Note records what somebody outside did to something on the node.
func (n *Node) Note(object, verb string, fields ...trace.Field) {
	n.rec.Record(trace.KindAction, object, verb, fields...)
}

// ExitCode is how a command ended whose ExecSync returned err; ended is false if it did
// not run.
func ExitCode(err error) (code int, ended bool) {
	if err == nil {
		return 0, true
	}
	var exit utilexec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitStatus(), true
	}
	return 0, false
}

// ContainerLog is what a pod's container wrote, of its last run: the text, without times
// and streams; "" if there is none. It is for use between runs.
func (n *Node) ContainerLog(pod *v1.Pod, container string) string {
	dir := path.Join("/var/log/pods", pod.Namespace+"_"+pod.Name+"_"+string(pod.UID), container)
	if n.fs == nil {
		return ""
	}
	list, err := n.fs.ReadDir(dir)
	if err != nil {
		return ""
	}
	last := -1
	for _, f := range list {
		if i, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".log")); err == nil {
			last = max(last, i)
		}
	}
	data, err := n.fs.ReadFile(path.Join(dir, strconv.Itoa(last)+".log"))
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	c := &logCopier{o: &v1.PodLogOptions{}, stdout: &out, stderr: &out, left: -1, fresh: true}
	for line := range bytes.Lines(data) {
		if more, err := c.copy(slices.Clone(line)); !more || err != nil {
			break
		}
	}
	return out.String()
}

// Metric is a metric of the node's kubelet: the sum of its samples that have all of the
// labels, of a histogram how many values it has seen; 0 if there is none. It is for use
// between runs.
func (n *Node) Metric(name string, labels map[string]string) (sum float64) {
	if n.kubelet == nil || n.group == nil {
		return 0
	}
	for _, of := range [...]server.MetricsPath{server.Metrics, server.ProbeMetrics} {
		families, err := n.serverHost().Metrics(context.Background(), of)
		if err != nil {
			return 0
		}
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.Metric {
				has := 0
				for _, l := range m.Label {
					if v, ok := labels[l.GetName()]; ok && v == l.GetValue() {
						has++
					}
				}
				if has == len(labels) {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
			return sum
		}
	}
	return 0
}
