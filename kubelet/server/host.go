package server

import (
	"context"
	"io"
	"net/http"
	"net/url"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Host is what a Server asks of its kubelet (upstream's HostInterface). Objects are
// shared and not to be written to. Any method may wait.
type Host interface {
	// Pods are the kubelet's, by namespace and name.
	Pods(ctx context.Context) ([]*v1.Pod, error)
	// RunningPods are those of the runtime, with names and images only.
	RunningPods(ctx context.Context) ([]*v1.Pod, error)
	// Pod is one of Pods, or nil.
	Pod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// Summary is what the node and its pods use.
	Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)
	// Log says where the newest log of a pod's container is, or that of its previous
	// run. The error is for the client.
	Log(ctx context.Context, pod *v1.Pod, container string, previous bool) (Log, error)
	// Run runs a command in a container and returns its output.
	Run(ctx context.Context, t Target, command []string) ([]byte, error)
	// Exec, Attach and PortForward return where the runtime serves such a stream. The
	// requests' IDs are filled in.
	Exec(ctx context.Context, t Target, req *runtimeapi.ExecRequest) (*url.URL, error)
	Attach(ctx context.Context, t Target, req *runtimeapi.AttachRequest) (*url.URL, error)
	PortForward(ctx context.Context, t Target, req *runtimeapi.PortForwardRequest) (*url.URL, error)
	// Checkpoint writes a checkpoint of a container and returns its file. timeout is
	// in seconds, 0: the runtime's own.
	Checkpoint(ctx context.Context, t Target, timeout int64) (file string, err error)
	// Metrics are the families of one of the paths below /metrics.
	Metrics(ctx context.Context, of MetricsPath) ([]*dto.MetricFamily, error)
}

// Target is a container of a pod, or with Container "" a pod. UID may be "".
type Target struct {
	Namespace, Pod string
	UID            types.UID
	Container      string
}

// Log is the log file of a container.
type Log struct {
	// Path is the file's, ContainerID the CRI's.
	Path, ContainerID string
}

// LogReader copies a log to whoever asked, as the options say. With Follow it
// returns when the container has ended, or the context.
type LogReader interface {
	ReadLog(ctx context.Context, log Log, o *v1.PodLogOptions, stdout, stderr io.Writer) error
}

// StreamKind is which kind of stream a request is for.
type StreamKind string

// The kinds of streams, by the names that metrics have for them.
const (
	ExecStream        StreamKind = "exec"
	AttachStream      StreamKind = "attach"
	PortForwardStream StreamKind = "portforward"
)

// Stream is a stream that a client wants.
type Stream struct {
	Kind StreamKind
	// Stdin, Stdout, Stderr and TTY are those of exec and attach.
	Stdin, Stdout, Stderr, TTY bool
}

// Streams connects a client's request with what the runtime serves at a URL.
type Streams interface {
	ServeStream(w http.ResponseWriter, r *http.Request, to *url.URL, s Stream)
}

// MetricsPath is one of the paths at which there are metrics.
type MetricsPath string

// The paths of metrics.
const (
	Metrics         MetricsPath = "/metrics"
	CAdvisorMetrics MetricsPath = "/metrics/cadvisor"
	ResourceMetrics MetricsPath = "/metrics/resource"
	ProbeMetrics    MetricsPath = "/metrics/probes"
)
