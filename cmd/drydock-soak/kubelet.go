//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/real"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// runKubelet is a kubelet in this process, for when no command is given. It has
// the same configuration as the process would read from its file. Times are in its log since it
// is read beside the soak's own lines.
func runKubelet(ctx context.Context, endpoint, dir string) error {
	no := false
	cfg := &kubeletconfig.KubeletConfiguration{
		StaticPodPath: filepath.Join(dir, "manifests"), ContainerRuntimeEndpoint: endpoint,
		PodLogsDir: filepath.Join(dir, "logs"), FailCgroupV1: &no, FailSwapOn: &no, MakeIPTablesUtilChains: &no,
		ContainerLogMaxSize: logSize, CgroupRoot: cgroupRoot(dir), ClusterDNS: []string{"10.96.0.10"},
	}
	kubeletcfg.SetDefaults(cfg)
	if err := kubeletcfg.Validate(cfg); err != nil {
		return err
	}
	return real.Run(ctx, real.Options{
		Config: cfg, NodeName: "soak", RootDir: filepath.Join(dir, "kubelet"), ContainerLogsDir: filepath.Join(dir, "containers"),
		Defaulter: apiserver.SetPodDefaults,
		Validator: func(pod *v1.Pod) error { return apiserver.ValidatePod(pod).ToAggregate() },
		Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
		},
	})
}
