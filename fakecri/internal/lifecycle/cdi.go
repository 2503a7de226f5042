package lifecycle

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// injectCDI gives a container the environment of its CDI devices. The error is
// containerd's for devices that no CDI file of the machine has; a machine that knows of
// no files has any device, and containers get nothing with it.
func (r *Machine) injectCDI(c *records.Container) error {
	if len(c.Config.CDIDevices) == 0 || r.CDI == nil {
		return nil
	}
	var unknown []string
	config := proto.Clone(c.Config).(*runtimeapi.ContainerConfig)
	for _, d := range config.CDIDevices {
		env, ok := r.CDI[d.Name]
		if !ok {
			unknown = append(unknown, d.Name)
		}
		for _, e := range env {
			k, v, _ := strings.Cut(e, "=")
			config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: k, Value: []byte(v)})
		}
	}
	if len(unknown) > 0 {
		return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to apply OCI options: failed to inject CDI devices: unresolvable CDI devices %s", c.ID, strings.Join(unknown, ", "))
	}
	c.Config = config
	return nil
}
