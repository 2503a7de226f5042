//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeChecks are about the runtime as a whole.
func runtimeChecks() []*check {
	return []*check{
		{name: "cri/runtime/version", level: Required, run: checkVersion,
			expect: "Version answers a request of 0.1.0 with version, runtime_name, runtime_version and runtime_api_version."},
		{name: "cri/runtime/status", level: Required, run: checkStatus,
			expect: "Status has the conditions RuntimeReady and NetworkReady, both true."},
		{name: "cri/runtime/status-verbose", level: Optional, run: checkStatusVerbose,
			expect: "Status has info, of JSON, if and only if verbose is asked for."},
		{name: "cri/runtime/handlers", level: Optional, run: checkHandlers,
			expect: "Status lists its runtime handlers, the default one, with the empty name, among them."},
		{name: "cri/runtime/config", level: Optional, run: checkRuntimeConfig,
			expect: "RuntimeConfig tells the cgroup driver."},
		{name: "cri/runtime/update-config", level: Optional, run: checkUpdateConfig,
			expect: "UpdateRuntimeConfig accepts a configuration that says nothing."},
	}
}

// checkVersion: kubelets refuse to start over any other version of the interface. 0.1.0 is the
// kubelet's own constant (kubeRuntimeAPIVersion).
func checkVersion(ctx context.Context, t *T) {
	r, err := t.rt.Version(ctx, &runtimeapi.VersionRequest{Version: "0.1.0"})
	t.must(err, "Version")
	if r.Version != "0.1.0" {
		t.Errorf("version is %q, and kubelets refuse any but 0.1.0", r.Version)
	}
	for field, v := range map[string]string{"runtime_name": r.RuntimeName, "runtime_version": r.RuntimeVersion, "runtime_api_version": r.RuntimeApiVersion} {
		if v == "" {
			t.Errorf("%s is empty", field)
		}
	}
}

// checkStatus: the two conditions decide whether a node is ready. The kubelet's runtimeState goes
// by them; without both its node is NotReady.
func checkStatus(ctx context.Context, t *T) {
	r, err := t.rt.Status(ctx, &runtimeapi.StatusRequest{})
	t.must(err, "Status")
	for _, name := range []string{"RuntimeReady", "NetworkReady"} {
		found := false
		for _, c := range r.GetStatus().GetConditions() {
			if c.Type != name {
				continue
			}
			found = true
			if !c.Status {
				t.Errorf("%s is false: %s: %s", name, c.Reason, c.Message)
			}
		}
		if !found {
			t.Errorf("there is no condition %s", name)
		}
	}
}

// checkStatusVerbose: info comes only when asked for, since a kubelet asks every
// five seconds. info.config is read by cri-tools.
func checkStatusVerbose(ctx context.Context, t *T) {
	quiet, err := t.rt.Status(ctx, &runtimeapi.StatusRequest{})
	t.must(err, "Status")
	if len(quiet.Info) > 0 {
		t.Errorf("there is info though verbose was not asked for")
	}
	r, err := t.rt.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	t.must(err, "Status")
	if len(r.Info) == 0 {
		t.Errorf("there is no info though verbose was asked for")
	}
	if c, ok := r.Info["config"]; ok && !json.Valid([]byte(c)) {
		t.Errorf("info.config is no JSON")
	}
}

// checkHandlers: what RuntimeClasses may name. The node's status has them for the scheduler
// (KEP-3858, and user namespaces).
func checkHandlers(ctx context.Context, t *T) {
	r, err := t.rt.Status(ctx, &runtimeapi.StatusRequest{})
	t.must(err, "Status")
	if len(r.RuntimeHandlers) == 0 {
		t.Skipf("the runtime tells no handlers")
	}
	if slices.ContainsFunc(r.RuntimeHandlers, func(h *runtimeapi.RuntimeHandler) bool { return h.Name == "" }) {
		return
	}
	t.Errorf("none of the %d handlers has the empty name", len(r.RuntimeHandlers))
}

// checkRuntimeConfig: the cgroup driver must be the kubelet's too, and may not
// change while it runs. KEP-4033 has kubelets ask for it.
func checkRuntimeConfig(ctx context.Context, t *T) {
	r, err := t.rt.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	t.orSkip(err, "RuntimeConfig")
	if r.GetLinux() == nil {
		t.Errorf("there is no linux configuration, so kubelets fall back to their own cgroup driver")
	}
	again, err := t.rt.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	t.must(err, "RuntimeConfig")
	if again.GetLinux().GetCgroupDriver() != r.GetLinux().GetCgroupDriver() {
		t.Errorf("the cgroup driver is %s, then %s", r.GetLinux().GetCgroupDriver(), again.GetLinux().GetCgroupDriver())
	}
}

// checkUpdateConfig: an empty one changes nothing and is taken.
func checkUpdateConfig(ctx context.Context, t *T) {
	_, err := t.rt.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: &runtimeapi.RuntimeConfig{}})
	t.orSkip(err, "UpdateRuntimeConfig")
}
