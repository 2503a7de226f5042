package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// containerKind tells the lists of containers apart, by what may be set in them:
// init containers that end have no probes and hooks, those that stay (sidecars)
// have, and ephemeral ones have nothing that would need the pod to be planned anew.
type containerKind int

const (
	regular containerKind = iota
	initial
	sidecar
	ephemeral
)

// validateContainers checks all of a pod's containers. Their names are unique
// across all lists, because the runtime and the status know them by name alone.
func (c *checker) validateContainers(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	s, names := c.spec, map[string]bool{}
	// A pod of init containers alone would never be ready.
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i := range s.Containers {
		p := path.Child("containers").Index(i)
		errs = append(errs, containerName(s.Containers[i].Name, names, p)...)
		errs = append(errs, c.validateContainer(&s.Containers[i], regular, p)...)
	}
	errs = append(errs, validateHostPorts(s.Containers, path.Child("containers"))...)
	errs = append(errs, validateHostNetwork(s, c.pod != nil, path.Child("containers"))...)
	for i := range s.InitContainers {
		ctr := &s.InitContainers[i]
		p := path.Child("initContainers").Index(i)
		kind := initial
		if restartsAlways(ctr) {
			kind = sidecar
		}
		errs = append(errs, containerName(ctr.Name, names, p)...)
		errs = append(errs, c.validateContainer(ctr, kind, p)...)
		// They run one by one. The path is upstream's: of the list's first, whichever
		// it is.
		errs = append(errs, validateHostPorts(s.InitContainers[i:i+1], path.Child("initContainers"))...)
	}
	return append(errs, c.validateEphemeral(path.Child("ephemeralContainers"))...)
}

// restartsAlways reports whether an init container is a sidecar: it stays, so it may have
// what regular ones have.
func restartsAlways(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// eachContainer calls fn for all containers of a spec, with their paths.
func eachContainer(s *v1.PodSpec, path *field.Path, fn func(c *v1.Container, path *field.Path)) {
	for i := range s.InitContainers {
		fn(&s.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range s.Containers {
		fn(&s.Containers[i], path.Child("containers").Index(i))
	}
	for i := range s.EphemeralContainers {
		fn((*v1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon), path.Child("ephemeralContainers").Index(i))
	}
}

// validateEphemeral is validateEphemeralContainers. It collects the other lists'
// names itself: updates through the subresource check ephemeral containers alone.
func (c *checker) validateEphemeral(path *field.Path) field.ErrorList {
	s := c.spec
	if len(s.EphemeralContainers) == 0 {
		return nil
	}
	var errs field.ErrorList
	names, others := map[string]bool{}, map[string]bool{}
	for _, list := range [...][]v1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			names[list[i].Name], others[list[i].Name] = true, true
		}
	}
	for i := range s.EphemeralContainers {
		e := &s.EphemeralContainers[i]
		ctr := (*v1.Container)(&e.EphemeralContainerCommon)
		p := path.Index(i)
		errs = append(errs, containerName(ctr.Name, names, p)...)
		errs = append(errs, c.validateContainer(ctr, ephemeral, p)...)
		if c.pod == nil { // in a template the image is checked all the same
			errs = append(errs, trimmedImage(ctr, p)...)
		}
		if t := e.TargetContainerName; t != "" && !others[t] {
			errs = append(errs, field.NotFound(p.Child("targetContainerName"), t))
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			// Nothing here can be given to a pod that is running already, or needs
			// a container that is to stay.
			{"ports", ctr.Ports != nil}, {"livenessProbe", ctr.LivenessProbe != nil}, {"readinessProbe", ctr.ReadinessProbe != nil},
			{"startupProbe", ctr.StartupProbe != nil}, {"lifecycle", ctr.Lifecycle != nil},
			{"resources", ctr.Resources.Limits != nil || ctr.Resources.Requests != nil || ctr.Resources.Claims != nil},
			{"resizePolicy", ctr.ResizePolicy != nil}, {"restartPolicy", ctr.RestartPolicy != nil}, {"restartPolicyRules", ctr.RestartPolicyRules != nil},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(p.Child(f.name), "cannot be set for an Ephemeral Container"))
			}
		}
		for j, m := range ctr.VolumeMounts {
			// A sub-path is resolved when the pod's volumes are mounted, before
			// such a container comes.
			for _, f := range []struct{ name, value string }{{"subPath", m.SubPath}, {"subPathExpr", m.SubPathExpr}} {
				if f.value != "" {
					errs = append(errs, field.Forbidden(p.Child("volumeMounts").Index(j).Child(f.name), "cannot be set for an Ephemeral Container"))
				}
			}
		}
	}
	return errs
}

// containerName checks a name that must not be among names, and adds it. A
// duplicate is an error of the later container.
func containerName(name string, names map[string]bool, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "")}
	}
	errs := fields.DNSLabel(name, path.Child("name"))
	if names[name] {
		errs = append(errs, field.Duplicate(path.Child("name"), name))
	}
	names[name] = true
	return errs
}

// validateContainer is validateContainerCommon with what init containers and
// regular ones have beside it.
func (c *checker) validateContainer(ctr *v1.Container, kind containerKind, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ctr.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	if c.pod != nil {
		errs = append(errs, trimmedImage(ctr, path)...)
	}
	errs = append(errs, fields.OneOf(ctr.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, fields.OneOf(ctr.ImagePullPolicy, path.Child("imagePullPolicy"), v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs, validatePorts(ctr.Ports, path.Child("ports"))...)
	errs = append(errs, c.validateEnv(ctr, path)...)
	errs = append(errs, c.validateMounts(ctr, path.Child("volumeMounts"))...)
	errs = append(errs, c.validateDevices(ctr, path.Child("volumeDevices"))...)
	errs = append(errs, c.validateResources(&ctr.Resources, path.Child("resources"), false)...)
	errs = append(errs, validateResizePolicy(ctr, kind, c.spec.RestartPolicy, path.Child("resizePolicy"))...)
	errs = append(errs, c.validateSecurity(ctr.SecurityContext, path.Child("securityContext"))...)
	if kind == ephemeral {
		return errs // what follows it has not
	}
	errs = append(errs, validateRestart(ctr, path)...)
	for _, p := range []struct {
		name  string
		probe *v1.Probe
	}{{"livenessProbe", ctr.LivenessProbe}, {"readinessProbe", ctr.ReadinessProbe}, {"startupProbe", ctr.StartupProbe}} {
		switch {
		case p.probe == nil:
		case kind == initial: // it has ended before anybody could ask it
			errs = append(errs, field.Forbidden(path.Child(p.name), "may not be set for init containers without restartPolicy=Always"))
		default:
			errs = append(errs, validateProbe(p.probe, p.name, path.Child(p.name))...)
		}
	}
	switch l := ctr.Lifecycle; {
	case l == nil:
	case kind == initial:
		errs = append(errs, field.Forbidden(path.Child("lifecycle"), "may not be set for init containers without restartPolicy=Always"))
	default:
		errs = append(errs, c.validateHook(l.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, c.validateHook(l.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	return errs
}

// trimmedImage refuses spaces around an image's name. Templates may have them: some tools
// fill them in later.
func trimmedImage(ctr *v1.Container, path *field.Path) field.ErrorList {
	if strings.TrimSpace(ctr.Image) == ctr.Image {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("image"), ctr.Image, "must not have leading or trailing whitespace")}
}

// validateRestart checks a container's own restart policy and rules
// (validateContainerRestartPolicy). A nil policy is the pod's.
func validateRestart(c *v1.Container, path *field.Path) field.ErrorList {
	p := path.Child("restartPolicy")
	if c.RestartPolicy == nil {
		if len(c.RestartPolicyRules) > 0 {
			return field.ErrorList{field.Required(p, "must specify restartPolicy when restart rules are used")}
		}
		return nil
	}
	errs := fields.Supported(*c.RestartPolicy, p, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever, v1.ContainerRestartPolicyOnFailure)
	return append(errs, validateRestartRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
}

// The bounds of a container's restart rules.
const (
	maxRestartRules     = 20
	maxRestartExitCodes = 255
)

// validateRestartRules is validateContainerRestartRules. Rules that never fit are
// allowed: the first that fits acts.
func validateRestartRules(rules []v1.ContainerRestartRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rules) > maxRestartRules {
		errs = append(errs, field.TooMany(path, len(rules), maxRestartRules))
	}
	for i := range rules {
		p := path.Index(i)
		errs = append(errs, fields.Supported(rules[i].Action, p.Child("action"), v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)...)
		codes := rules[i].ExitCodes
		if codes == nil {
			errs = append(errs, field.Required(p.Child("exitCodes"), "must be specified"))
			continue
		}
		errs = append(errs, fields.Supported(codes.Operator, p.Child("exitCodes", "operator"), v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if len(codes.Values) > maxRestartExitCodes {
			errs = append(errs, field.TooMany(p.Child("exitCodes", "values"), len(codes.Values), maxRestartExitCodes))
		}
	}
	return errs
}

// validateResizePolicy checks which resources restart a container when they change
// (validateResizePolicy, which blames the list for most). One that nothing restarts must
// not ask for a restart.
func validateResizePolicy(c *v1.Container, kind containerKind, podPolicy v1.RestartPolicy, path *field.Path) field.ErrorList {
	if len(c.ResizePolicy) == 0 {
		return nil
	}
	var errs field.ErrorList
	seen := map[v1.ResourceName]bool{}
	for i, r := range c.ResizePolicy {
		if seen[r.ResourceName] {
			errs = append(errs, field.Duplicate(path.Index(i), r.ResourceName))
		}
		seen[r.ResourceName] = true
		errs = append(errs, fields.OneOf(r.ResourceName, path, v1.ResourceCPU, v1.ResourceMemory)...)
		errs = append(errs, fields.OneOf(r.RestartPolicy, path, v1.NotRequired, v1.RestartContainer)...)
		// A resize could only ask for a restart that never comes.
		if podPolicy == v1.RestartPolicyNever && r.RestartPolicy != v1.NotRequired {
			errs = append(errs, field.Invalid(path, r.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
		if kind == initial && r.RestartPolicy == v1.RestartContainer {
			errs = append(errs, field.Invalid(path.Index(i).Child("restartPolicy"), r.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers"))
		}
	}
	return errs
}

// validatePorts is validateContainerPorts. Names are unique within a container
// only: a service that targets one means it in each pod by itself.
func validatePorts(ports []v1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range ports {
		p := path.Index(i)
		if port.Name != "" {
			if msgs := validation.IsValidPortName(port.Name); len(msgs) > 0 {
				errs = append(errs, fields.Invalid(p.Child("name"), port.Name, msgs)...)
			} else if names[port.Name] {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names[port.Name] = true
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(p.Child("containerPort"), ""))
		} else {
			errs = append(errs, fields.Port(port.ContainerPort, p.Child("containerPort"))...)
		}
		if port.HostPort != 0 {
			errs = append(errs, fields.Port(port.HostPort, p.Child("hostPort"))...)
		}
		errs = append(errs, fields.OneOf(port.Protocol, p.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	return errs
}

// validateHostNetwork is validatePodHostNetworkDeps: with the host's network there is but
// one port. What was left out, defaulting has set in a pod; a template leaves it to its
// pods.
func validateHostNetwork(s *v1.PodSpec, isPod bool, path *field.Path) field.ErrorList {
	if !s.HostNetwork {
		return nil
	}
	var errs field.ErrorList
	for i := range s.Containers {
		for j, port := range s.Containers[i].Ports {
			if port.HostPort != port.ContainerPort && (isPod || port.HostPort != 0) {
				errs = append(errs, field.Invalid(path.Index(i).Child("ports").Index(j).Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return errs
}

// validateHostPorts requires that no two containers ask for one host port
// (checkHostPortConflicts).
func validateHostPorts(list []v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var seen map[string]bool
	for i := range list {
		for j, port := range list[i].Ports {
			if port.HostPort == 0 {
				continue
			}
			// One port may be taken by each protocol and at each of the host's
			// addresses.
			id := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if seen[id] {
				errs = append(errs, field.Duplicate(path.Index(i).Child("ports").Index(j).Child("hostPort"), id))
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[id] = true
		}
	}
	return errs
}
