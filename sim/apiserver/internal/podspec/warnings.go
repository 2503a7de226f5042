package podspec

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// Warnings are what a client is told of a new pod (WarningsOnCreate of pods and
// GetWarningsForPod of pkg/api/pod/warnings.go): what is allowed and yet hardly meant.
func Warnings(pod *v1.Pod) []string {
	var w warnings
	if texts := validation.IsDNS1123Label(pod.Name); len(texts) > 0 {
		w.say("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", texts)
	}
	w.spec(&pod.Spec, &pod.ObjectMeta, nil)
	return w
}

// TemplateWarnings are those of a template, which stands at a path.
func TemplateWarnings(t *v1.PodTemplateSpec, path *field.Path) []string {
	var w warnings
	w.spec(&t.Spec, &t.ObjectMeta, path)
	return w
}

// DeprecatedNodeLabel says what has taken the place of a label of nodes; "": it is in
// use.
func DeprecatedNodeLabel(key string) string {
	switch key {
	case "beta.kubernetes.io/arch":
		return `deprecated since v1.14; use "kubernetes.io/arch" instead`
	case "beta.kubernetes.io/os":
		return `deprecated since v1.14; use "kubernetes.io/os" instead`
	case "failure-domain.beta.kubernetes.io/region":
		return `deprecated since v1.17; use "topology.kubernetes.io/region" instead`
	case "failure-domain.beta.kubernetes.io/zone":
		return `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`
	case "beta.kubernetes.io/instance-type":
		return `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`
	case "app.kubernetes.io/created-by":
		return "deprecated since v1.9"
	case "scheduler.alpha.kubernetes.io/preferAvoidPods":
		return "deprecated since v1.22; use Taints and Tolerations instead"
	case "node-role.kubernetes.io/master":
		return `use "node-role.kubernetes.io/control-plane" instead`
	}
	return ""
}

// warnings are collected in upstream's order.
type warnings []string

func (w *warnings) say(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// spec looks at a pod's spec. root is the path of its template; nil for a pod.
func (w *warnings) spec(s *v1.PodSpec, m *metav1.ObjectMeta, root *field.Path) {
	spec := root.Child("spec")
	w.places(s, spec)
	w.annotations(s, m, root)
	w.volumes(s.Volumes, spec.Child("volumes"))
	for i, a := range s.HostAliases {
		if slices.ContainsFunc(s.HostAliases[:i], func(o v1.HostAlias) bool { return o.IP == a.IP }) {
			w.say("%s: duplicate ip %q", spec.Child("hostAliases").Index(i).Child("ip"), a.IP)
		}
	}
	for i, r := range s.ImagePullSecrets {
		p := spec.Child("imagePullSecrets").Index(i).Child("name")
		if slices.Contains(s.ImagePullSecrets[:i], r) {
			w.say("%s: duplicate name %q", p, r.Name)
		}
		if r.Name == "" {
			w.say("%s: invalid empty name %q", p, r.Name)
		}
	}
	w.fractions(s.Overhead, spec.Child("overhead"))
	eachContainer(s, spec, func(c *v1.Container, p *field.Path) {
		w.fractions(c.Resources.Limits, p.Child("resources", "limits"))
		w.fractions(c.Resources.Requests, p.Child("resources", "requests"))
		w.hidden(c.Env, p.Child("env"))
	})
	w.ports(s, spec)
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		w.say("%s: must be >= 0; negative values are invalid and will be treated as 1", spec.Child("terminationGracePeriodSeconds"))
	}
	if s.DNSConfig != nil {
		for i, ns := range s.DNSConfig.Nameservers {
			*w = append(*w, validation.GetWarningsForIP(spec.Child("dnsConfig", "nameservers").Index(i), ns)...)
		}
	}
	for i, a := range s.HostAliases {
		*w = append(*w, validation.GetWarningsForIP(spec.Child("hostAliases").Index(i).Child("ip"), a.IP)...)
	}
}

// places looks at where pods are to run: labels with old names, and terms that match no
// pod for want of a selector.
func (w *warnings) places(s *v1.PodSpec, path *field.Path) {
	for _, k := range fields.SortedKeys(s.NodeSelector) {
		if text := DeprecatedNodeLabel(k); text != "" {
			w.say("%s: %s", path.Child("nodeSelector").Key(k), text)
		}
	}
	const noSelector = "%s: a null labelSelector results in matching no pod"
	if s.Affinity != nil {
		w.nodeAffinity(s.Affinity.NodeAffinity, path.Child("affinity", "nodeAffinity"))
	}
	for i, t := range s.TopologySpreadConstraints {
		p := path.Child("topologySpreadConstraints").Index(i)
		if text := DeprecatedNodeLabel(t.TopologyKey); text != "" {
			w.say("%s: %s is %s", p.Child("topologyKey"), t.TopologyKey, text)
		}
		if t.LabelSelector == nil {
			w.say(noSelector, p.Child("labelSelector"))
		}
	}
	terms := func(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm, path *field.Path) {
		for i, t := range required {
			if t.LabelSelector == nil {
				w.say(noSelector, path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("labelSelector"))
			}
		}
		for i, t := range preferred {
			if t.PodAffinityTerm.LabelSelector == nil {
				w.say(noSelector, path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm", "labelSelector"))
			}
		}
	}
	if a := s.Affinity; a != nil && a.PodAffinity != nil {
		terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAffinity"))
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAntiAffinity"))
	}
}

// nodeAffinity is GetWarningsForNodeSelectorTerm of all terms. Values of preferred ones
// are not refused when no label can have them.
func (w *warnings) nodeAffinity(a *v1.NodeAffinity, path *field.Path) {
	if a == nil {
		return
	}
	term := func(t *v1.NodeSelectorTerm, values bool, path *field.Path) {
		for i, r := range t.MatchExpressions {
			p := path.Child("matchExpressions").Index(i)
			if text := DeprecatedNodeLabel(r.Key); text != "" {
				w.say("%s: %s is %s", p.Child("key"), r.Key, text)
			}
			for j, v := range r.Values {
				if !values {
					break
				}
				for _, text := range validation.IsValidLabelValue(v) {
					w.say("%s: %s is invalid, %s", p.Child("values").Index(j), v, text)
				}
			}
		}
	}
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for i := range r.NodeSelectorTerms {
			term(&r.NodeSelectorTerms[i], false, path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i))
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		term(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, true, path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"))
	}
}

// annotations tells of those that fields have taken the place of.
func (w *warnings) annotations(s *v1.PodSpec, m *metav1.ObjectMeta, root *field.Path) {
	if len(m.Annotations) == 0 {
		return
	}
	path := root.Child("metadata", "annotations")
	tell := func(key, text string) {
		if _, ok := m.Annotations[key]; ok {
			w.say("%s: %s", path.Key(key), text)
		}
	}
	tell("scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`)
	tell("security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`)
	tell("security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`)
	const seccomp = `non-functional in v1.27+; use the "seccompProfile" field instead`
	var own v1.PodSecurityContext
	if s.SecurityContext != nil {
		own = *s.SecurityContext
	}
	if own.SeccompProfile == nil {
		tell(v1.SeccompPodAnnotationKey, seccomp)
	}
	eachContainer(s, nil, func(c *v1.Container, _ *field.Path) {
		var sc v1.SecurityContext
		if c.SecurityContext != nil {
			sc = *c.SecurityContext
		}
		if sc.SeccompProfile == nil {
			tell(v1.SeccompContainerAnnotationKeyPrefix+c.Name, seccomp)
		}
		key := v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		if sc.AppArmorProfile == nil && (own.AppArmorProfile == nil || !equality.Semantic.DeepEqual(own.AppArmorProfile, appArmorOf(m.Annotations[key]))) {
			tell(key, `deprecated since v1.30; use the "appArmorProfile" field instead`)
		}
	})
}

// appArmorOf is what an annotation says, as a field; nil: nothing.
func appArmorOf(text string) *v1.AppArmorProfile {
	local, isLocal := strings.CutPrefix(text, v1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case text == v1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
	case text == v1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
	case isLocal && local != "":
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &local}
	}
	return nil
}

// volumes tells of drivers that are no more.
func (w *warnings) volumes(list []v1.Volume, path *field.Path) {
	for i := range list {
		v, p := &list[i], path.Index(i)
		for _, d := range []struct {
			set        bool
			name, text string
		}{
			{v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
			{v.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
			{v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
			{v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
			{v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
			{v.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
			{v.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
		} {
			if d.set {
				w.say("%s: %s", p.Child(d.name), d.text)
			}
		}
		w.overlaps(v)
		if e := v.Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			w.fractionOf(e.VolumeClaimTemplate.Spec.Resources.Requests, v1.ResourceStorage, p.Child("ephemeral", "volumeClaimTemplate", "spec", "resources", "requests"))
		}
	}
}

// fractions tells of bytes that are not whole.
func (w *warnings) fractions(l v1.ResourceList, path *field.Path) {
	w.fractionOf(l, v1.ResourceMemory, path)
	w.fractionOf(l, v1.ResourceEphemeralStorage, path)
}

func (w *warnings) fractionOf(l v1.ResourceList, name v1.ResourceName, path *field.Path) {
	if q, ok := l[name]; ok && q.MilliValue()%1000 != 0 {
		w.say("%s: fractional byte value %q is invalid, must be an integer", path.Key(string(name)), q.String())
	}
}

// hidden tells of variables that are defined anew without use of what they were.
func (w *warnings) hidden(list []v1.EnvVar, path *field.Path) {
	for i := range list {
		e := &list[i]
		if !slices.ContainsFunc(list[:i], func(o v1.EnvVar) bool { return o.Name == e.Name }) {
			continue
		}
		before := "$(" + e.Name + ")"
		if e.ValueFrom != nil || e.Value == before || !strings.Contains(e.Value, before) {
			w.say("%s: hides previous definition of %q, which may be dropped when using apply", path.Index(i), e.Name)
		}
	}
}

// ports tells of ports that are declared twice in a pod.
func (w *warnings) ports(s *v1.PodSpec, path *field.Path) {
	type declared struct {
		at *field.Path
		v1.ContainerPort
	}
	var all []declared
	eachContainer(s, path, func(c *v1.Container, p *field.Path) {
		for i, port := range c.Ports {
			at := p.Child("ports").Index(i)
			if port.HostIP != "" && port.HostPort == 0 {
				w.say("%s: hostIP set without hostPort: %+v", at, port)
			}
			for _, o := range all {
				if o.ContainerPort.ContainerPort != port.ContainerPort || o.Protocol != port.Protocol {
					continue
				}
				switch {
				case o.HostIP == port.HostIP && o.HostPort == port.HostPort:
					w.say("%s: duplicate port definition with %s", at, o.at)
				case o.HostPort == 0 || port.HostPort == 0:
					w.say("%s: overlapping port definition with %s", at, o.at)
				case o.HostPort == port.HostPort && (o.HostIP == "") != (port.HostIP == ""):
					w.say("%s: dangerously ambiguous port definition with %s", at, o.at)
				}
			}
			all = append(all, declared{at, port})
		}
	})
	for i, d := range all {
		if d.Name == "" {
			continue
		}
		if j := slices.IndexFunc(all[:i], func(o declared) bool { return o.Name == d.Name }); j >= 0 {
			w.say("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s", d.at, d.Name, all[j].at, all[j].at)
		}
	}
}
