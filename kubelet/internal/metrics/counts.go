package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// ensured is how it went when an image was asked for.
type ensured struct{ present, policy, required string }

// ended is how a container ended.
type ended struct {
	of     ContainerType
	code   int32
	reason string
}

// Working is how far the worker of a pod has come, and why there is one.
type Working struct {
	// Config is desired, orphan or runtime_only, Lifecycle sync, terminating or
	// terminated, Static true, "" or unknown.
	Config, Lifecycle, Static string
}

// Image counts an image that a container asked for: whether it was present, nil for not
// looked at, and whether it has to be pulled, nil for not known.
func (k *Kubelet) Image(policy string, present, required *bool) {
	if k == nil {
		return
	}
	if k.ensured == nil {
		k.ensured = map[ensured]uint64{}
	}
	k.ensured[ensured{known(present), policy, known(required)}]++
}

func known(v *bool) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatBool(*v)
}

// Ended counts a container whose end is told for the first time.
func (k *Kubelet) Ended(of ContainerType, code int32, reason string) {
	if k == nil {
		return
	}
	if k.ended == nil {
		k.ended = map[ended]uint64{}
	}
	k.ended[ended{of, code, reason}]++
}

// CredentialPlugin counts a run of an image credential provider plugin.
func (k *Kubelet) CredentialPlugin(name string, took time.Duration, failed bool) {
	if k == nil {
		return
	}
	if k.credentialPlugins == nil {
		k.credentialPlugins = map[string]*call{}
	}
	c := k.credentialPlugins[name]
	if c == nil {
		c = &call{}
		k.credentialPlugins[name] = c
	}
	c.took.Observe(took.Seconds(), defaultBuckets)
	if failed {
		c.errors++
	}
}

// OrphanFound counts a pod that only the runtime knew.
func (k *Kubelet) OrphanFound() {
	if k != nil {
		k.Orphaned++
	}
}

// SleepEnded counts a lifecycle hook whose sleep was cut short.
func (k *Kubelet) SleepEnded() {
	if k != nil {
		k.SleepsEnded++
	}
}

// StatusSent counts a status that the API took, so many ns after it changed.
func (k *Kubelet) StatusSent(after int64) {
	if k != nil {
		k.statusSync.Observe(float64(after)/1e9, statusBuckets)
	}
}

// statusBuckets are those of kubelet_pod_status_sync_duration_seconds.
var statusBuckets = []float64{.01, .05, .1, .5, 1, 5, 10, 20, 30, 45, 60}

// labelled adds what is counted by labels.
func (k *Kubelet) labelled(b *builder, s *State) {
	images := make([]ensured, 0, len(k.ensured))
	for e := range k.ensured { //drydock:unordered sorted below
		images = append(images, e)
	}
	slices.SortFunc(images, func(a, c ensured) int {
		return cmp.Or(cmp.Compare(a.present, c.present), cmp.Compare(a.policy, c.policy), cmp.Compare(a.required, c.required))
	})
	for _, e := range images {
		b.counter("kubelet_image_manager_ensure_image_requests_total", k.ensured[e], "present_locally", e.present, "pull_policy", e.policy, "pull_required", e.required)
	}
	ends := make([]ended, 0, len(k.ended))
	for e := range k.ended { //drydock:unordered sorted below
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, c ended) int {
		return cmp.Or(cmp.Compare(a.of, c.of), cmp.Compare(a.code, c.code), cmp.Compare(a.reason, c.reason))
	})
	for _, e := range ends {
		b.counter("kubelet_terminated_containers_total", k.ended[e], "container_type", string(e.of), "exit_code", strconv.Itoa(int(e.code)), "reason", e.reason)
	}
	for _, name := range sorted(k.credentialPlugins) {
		c := k.credentialPlugins[name]
		b.histogram("kubelet_credential_provider_plugin_duration", &c.took, defaultBuckets, 0, 0, "plugin_name", name)
		if c.errors > 0 {
			b.counter("kubelet_credential_provider_plugin_errors_total", uint64(c.errors), "plugin_name", name)
		}
	}
	if s.CredentialProviderHash != "" {
		b.gauge("kubelet_credential_provider_config_info", 1, "hash", s.CredentialProviderHash)
	}
	for _, config := range [...]string{"desired", "orphan", "runtime_only"} {
		for _, lifecycle := range [...]string{"sync", "terminated", "terminating"} {
			for _, static := range [...]string{"", "true", "unknown"} {
				if (config == "runtime_only") == (static == "unknown") {
					b.gauge("kubelet_working_pods", float64(s.Working[Working{config, lifecycle, static}]), "config", config, "lifecycle", lifecycle, "static", static)
				}
			}
		}
	}
	for _, g := range s.Gates {
		b.gauge("kubernetes_feature_enabled", b2f(g.On), "name", g.Name, "stage", g.Stage)
	}
}

func b2f(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
