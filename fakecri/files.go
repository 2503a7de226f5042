package fakecri

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// UsesFiles reports whether a container of the config, once created in the
// sandbox, could read or write the files that a kubelet makes for it and mounts
// (/etc/hosts, the termination message). A stated program that leaves no
// message does neither, so a kubelet need not make them. The config's command
// is as the pod writes it.
func (c *Client) UsesFiles(podSandboxID string, config *runtimeapi.ContainerConfig) bool {
	s := c.r.recs.SandboxFor(podSandboxID)
	img := c.r.images.Find(config.Image.GetImage())
	if s == nil || img == nil {
		return true
	}
	made := &c.r.unmade
	made.Sandbox, made.Config, made.Image = s, config, img
	b, interpreted := c.r.run.Resolve(made)
	interpreted = interpreted || c.r.run.AsProcess(made)
	*made = records.Container{}
	return interpreted || b.TerminationMessage != ""
}
