package document

import (
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// NFSServer is a server of NFS, on no node. Volumes name it (`nfs: {server: ..., path: ...}`). The data of an export goes to the node that mounts it; what several nodes write at once is put together as they let go, file by file the newest.
type NFSServer struct {
	// The name or address by which volumes name it.
	Server string `json:"server" required:""`
	// The directories that can be mounted, each as a whole.
	Exports []string `json:"exports" required:""`
	// How long a mount takes: a time or a range. No time unless said.
	Latency *value.Range `json:"latency,omitempty"`
}

// Check wants absolute paths.
func (n *NFSServer) Check(at decode.Place) {
	for i, e := range n.Exports {
		switch {
		case !strings.HasPrefix(e, "/"):
			at.Field("exports").Index(i).Errorf("%s must be an absolute path", decode.Short(e))
		case slices.Contains(n.Exports[:i], e):
			at.Field("exports").Index(i).Errorf("%s is there twice", decode.Short(e))
		}
	}
}

// Options are the server as the cluster takes it.
func (n *NFSServer) Options() plugins.NFSOptions {
	o := plugins.NFSOptions{Server: n.Server, Exports: n.Exports}
	if n.Latency != nil {
		o.Latency = plugins.Span{Min: n.Latency.Min, Max: n.Latency.Max}
	}
	return o
}

// checkNFS wants each server once.
func (s *Spec) checkNFS(at decode.Place) {
	for i := range s.NFS {
		if name := s.NFS[i].Server; name != "" && slices.ContainsFunc(s.NFS[:i], func(o NFSServer) bool { return o.Server == name }) {
			at.Index(i).Field("server").Errorf("%s is there twice", decode.Short(name))
		}
	}
}
