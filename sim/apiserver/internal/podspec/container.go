package podspec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
func validateContainers(s *v1.PodSpec, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	// A pod of init containers alone would never be ready.
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i := range s.Containers {
		p := path.Child("containers").Index(i)
		errs = append(errs, containerName(s.Containers[i].Name, names, p)...)
		errs = append(errs, validateContainer(&s.Containers[i], regular, s.HostNetwork, volumes, p)...)
		errs = append(errs, validateResizePolicy(&s.Containers[i], s.RestartPolicy, p.Child("resizePolicy"))...)
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		p := path.Child("initContainers").Index(i)
		// One that restarts always is a sidecar: it stays, so it may have what
		// regular ones have.
		kind := initial
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			kind = sidecar
		}
		errs = append(errs, containerName(c.Name, names, p)...)
		errs = append(errs, validateContainer(c, kind, s.HostNetwork, volumes, p)...)
		errs = append(errs, validateResizePolicy(c, s.RestartPolicy, p.Child("resizePolicy"))...)
	}
	errs = append(errs, validateHostPorts(s, path)...)
	return append(errs, validateEphemeral(s, volumes, path.Child("ephemeralContainers"))...)
}

// validateEphemeral is validateEphemeralContainers. It collects the other lists'
// names itself: updates through the subresource check ephemeral containers alone.
func validateEphemeral(s *v1.PodSpec, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	if len(s.EphemeralContainers) == 0 {
		return nil
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range s.Containers {
		names[s.Containers[i].Name] = true
	}
	for i := range s.InitContainers {
		names[s.InitContainers[i].Name] = true
	}
	// In what follows names grow by the ephemeral containers themselves, of which
	// none can be a target.
	others := len(names)
	for i := range s.EphemeralContainers {
		e := &s.EphemeralContainers[i]
		c := (*v1.Container)(&e.EphemeralContainerCommon)
		p := path.Index(i)
		if t := e.TargetContainerName; t != "" && (!names[t] || others == 0) {
			errs = append(errs, field.NotFound(p.Child("targetContainerName"), t))
		}
		errs = append(errs, containerName(c.Name, names, p)...)
		errs = append(errs, validateContainer(c, ephemeral, s.HostNetwork, volumes, p)...)
		for _, f := range []struct {
			name string
			set  bool
		}{
			// Nothing here can be given to a pod that is running already, or needs
			// a container that is to stay.
			{"ports", len(c.Ports) > 0}, {"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil},
			{"startupProbe", c.StartupProbe != nil}, {"lifecycle", c.Lifecycle != nil},
			{"resources", len(c.Resources.Limits)+len(c.Resources.Requests) > 0},
			{"resizePolicy", len(c.ResizePolicy) > 0},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(p.Child(f.name), "cannot be set for an Ephemeral Container"))
			}
		}
		for j, m := range c.VolumeMounts {
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
// regular ones have beside it. volumes are the pod's, by name: a mount names one of
// them.
func validateContainer(c *v1.Container, kind containerKind, hostNetwork bool, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, fields.OneOf(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, fields.OneOf(c.ImagePullPolicy, path.Child("imagePullPolicy"), v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs, validatePorts(c.Ports, hostNetwork, path.Child("ports"))...)
	errs = append(errs, validateEnv(c, path)...)
	errs = append(errs, validateMounts(c, volumes, path)...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"), false)...)
	errs = append(errs, validateRestart(c, kind, path)...)
	for _, p := range []struct {
		name  string
		probe *v1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if p.probe == nil {
			continue
		}
		// It has ended before anybody could ask it.
		if kind == initial {
			errs = append(errs, field.Forbidden(path.Child(p.name), "may not be set for init containers without restartPolicy=Always"))
			continue
		}
		errs = append(errs, validateProbe(p.probe, p.name, path.Child(p.name))...)
	}
	if l := c.Lifecycle; l != nil {
		if kind == initial {
			errs = append(errs, field.Forbidden(path.Child("lifecycle"), "may not be set for init containers without restartPolicy=Always"))
		} else {
			errs = append(errs, validateHook(l.PostStart, path.Child("lifecycle", "postStart"))...)
			errs = append(errs, validateHook(l.PreStop, path.Child("lifecycle", "preStop"))...)
		}
	}
	// Privileged implies that it may gain privileges.
	if sc := c.SecurityContext; sc != nil && sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation && sc.Privileged != nil && *sc.Privileged {
		errs = append(errs, field.Invalid(path.Child("securityContext"), "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	return errs
}

// validateRestart checks a container's own restart policy and rules
// (validateContainerRestartPolicy). A nil policy is the pod's.
func validateRestart(c *v1.Container, kind containerKind, path *field.Path) field.ErrorList {
	p := path.Child("restartPolicy")
	if c.RestartPolicy == nil {
		if len(c.RestartPolicyRules) > 0 {
			return field.ErrorList{field.Required(p, "must specify restartPolicy when restart rules are used")}
		}
		return nil
	}
	if kind == ephemeral {
		return field.ErrorList{field.Forbidden(p, "cannot be set for an Ephemeral Container")}
	}
	errs := fields.OneOf(*c.RestartPolicy, p, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever, v1.ContainerRestartPolicyOnFailure)
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
		errs = append(errs, fields.OneOf(rules[i].Action, p.Child("action"), v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)...)
		codes := rules[i].ExitCodes
		if codes == nil {
			errs = append(errs, field.Required(p.Child("exitCodes"), "must be specified"))
			continue
		}
		errs = append(errs, fields.OneOf(codes.Operator, p.Child("exitCodes", "operator"), v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if len(codes.Values) > maxRestartExitCodes {
			errs = append(errs, field.TooMany(p.Child("exitCodes", "values"), len(codes.Values), maxRestartExitCodes))
		}
	}
	return errs
}

// validateResizePolicy checks which resources restart a container when they change
// (validateResizePolicy). One that nothing restarts must not ask for a restart.
func validateResizePolicy(c *v1.Container, podPolicy v1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[v1.ResourceName]bool{}
	for i, r := range c.ResizePolicy {
		p := path.Index(i)
		if seen[r.ResourceName] {
			errs = append(errs, field.Duplicate(p, r.ResourceName))
		}
		seen[r.ResourceName] = true
		errs = append(errs, fields.OneOf(r.ResourceName, p.Child("resourceName"), v1.ResourceCPU, v1.ResourceMemory)...)
		errs = append(errs, fields.OneOf(r.RestartPolicy, p.Child("restartPolicy"), v1.NotRequired, v1.RestartContainer)...)
		// A resize could only ask for a restart that never comes.
		if podPolicy == v1.RestartPolicyNever && c.RestartPolicy == nil && r.RestartPolicy == v1.RestartContainer {
			errs = append(errs, field.Invalid(p, r.RestartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
		}
	}
	return errs
}

// validatePorts is validateContainerPorts. Names are unique within a container
// only: a service that targets one means it in each pod by itself.
func validatePorts(ports []v1.ContainerPort, hostNetwork bool, path *field.Path) field.ErrorList {
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
			// With the host's network there is but one port; defaulting has set
			// what was left out.
			if hostNetwork && port.HostPort != port.ContainerPort {
				errs = append(errs, field.Invalid(p.Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
		errs = append(errs, fields.OneOf(port.Protocol, p.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	return errs
}

// validateHostPorts requires that no two containers ask for one host port
// (checkHostPortConflicts). Init containers are over when the others begin, so
// theirs don't count.
func validateHostPorts(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range s.Containers {
		for j, port := range s.Containers[i].Ports {
			if port.HostPort == 0 {
				continue
			}
			// One port may be taken by each protocol and at each of the host's
			// addresses.
			id := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if seen[id] {
				errs = append(errs, field.Duplicate(path.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"), id))
			}
			seen[id] = true
		}
	}
	return errs
}

// validateEnv is ValidateEnv and ValidateEnvFrom. Names are nearly free
// (RelaxedEnvironmentVariableValidation); what of them a shell can use is the
// shell's business.
func validateEnv(c *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range c.Env {
		p := path.Child("env").Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			errs = append(errs, fields.Invalid(p.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(e, p.Child("valueFrom"))...)
		}
	}
	for i, e := range c.EnvFrom {
		p := path.Child("envFrom").Index(i)
		if e.Prefix != "" {
			errs = append(errs, fields.Invalid(p.Child("prefix"), e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))...)
		}
		switch {
		// One source, no more and no less: upstream words the two mistakes alike.
		case e.ConfigMapRef == nil && e.SecretRef == nil:
			errs = append(errs, field.Invalid(p, "", "must specify one of: `configMapRef` or `secretRef`"))
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			errs = append(errs, field.Invalid(p, "", "may not have more than one field specified at a time"))
		case e.ConfigMapRef != nil && e.ConfigMapRef.Name == "":
			errs = append(errs, field.Required(p.Child("configMapRef", "name"), ""))
		case e.SecretRef != nil && e.SecretRef.Name == "":
			errs = append(errs, field.Required(p.Child("secretRef", "name"), ""))
		}
	}
	return errs
}

// validateEnvSource is validateEnvVarValueFrom. Which fields fieldRef can reach,
// the kubelet says when it makes the environment.
func validateEnvSource(e v1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	from := e.ValueFrom
	n := 0
	if f := from.FieldRef; f != nil {
		n++
		if f.FieldPath == "" {
			errs = append(errs, field.Required(path.Child("fieldRef", "fieldPath"), ""))
		}
	}
	if f := from.ResourceFieldRef; f != nil {
		n++
		if f.Resource == "" {
			errs = append(errs, field.Required(path.Child("resourceFieldRef", "resource"), ""))
		}
	}
	// A key is checked as the object would check it, so that a typo shows before
	// the pod waits for it.
	keyRef := func(name, object, key string) {
		n++
		if object == "" {
			errs = append(errs, field.Required(path.Child(name, "name"), ""))
		}
		if key == "" {
			errs = append(errs, field.Required(path.Child(name, "key"), ""))
		} else {
			errs = append(errs, fields.Invalid(path.Child(name, "key"), key, validation.IsConfigMapKey(key))...)
		}
	}
	if f := from.ConfigMapKeyRef; f != nil {
		keyRef("configMapKeyRef", f.Name, f.Key)
	}
	if f := from.SecretKeyRef; f != nil {
		keyRef("secretKeyRef", f.Name, f.Key)
	}
	if from.FileKeyRef != nil {
		n++
	}
	switch {
	case n == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case n > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

// validateMounts is ValidateVolumeMounts, with devices as far as they name a
// volume.
func validateMounts(c *v1.Container, volumes map[string]*v1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	// Two mounts at one place would hide each other.
	paths := map[string]bool{}
	for i, m := range c.VolumeMounts {
		p := at.Child("volumeMounts").Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else if volumes[m.Name] == nil {
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		}
		if paths[m.MountPath] {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths[m.MountPath] = true
		if m.SubPath != "" {
			errs = append(errs, localPath(m.SubPath, p.Child("subPath"))...)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				errs = append(errs, field.Invalid(p.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
			}
			errs = append(errs, localPath(m.SubPathExpr, p.Child("subPathExpr"))...)
		}
	}
	for i, d := range c.VolumeDevices {
		if v := volumes[d.Name]; v == nil {
			errs = append(errs, field.NotFound(at.Child("volumeDevices").Index(i).Child("name"), d.Name))
		}
	}
	return errs
}

// localPath requires a relative path that does not leave its root
// (validateLocalNonReservedPath): it becomes a path below a volume on the host.
func localPath(v string, at *field.Path) field.ErrorList {
	if path.IsAbs(v) {
		return field.ErrorList{field.Invalid(at, v, "must be a relative path")}
	}
	if slices.Contains(strings.Split(v, "/"), "..") {
		return field.ErrorList{field.Invalid(at, v, "must not contain '..'")}
	}
	return nil
}

// validateProbe is validateProbe. Only readiness comes back after a failure, so
// only it may want more than one success, and only the others end a container, so
// only they may have a grace period of their own. A startup probe is like a liveness probe in
// both respects.
func validateProbe(p *v1.Probe, name string, path *field.Path) field.ErrorList {
	errs := validateHandler(p.Exec, p.HTTPGet, p.TCPSocket, p.GRPC, nil, path)
	for _, f := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds}, {"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		errs = append(errs, fields.NonNegative(int64(f.value), path.Child(f.name))...)
	}
	if g := p.TerminationGracePeriodSeconds; g != nil {
		// It never ends a container, so there is no end to give time for.
		if name == "readinessProbe" {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must not be set for readinessProbes"))
		} else if *g <= 0 {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
		}
	}
	if name != "readinessProbe" && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	return errs
}

// validateHook is validateLifecycleHandler.
func validateHook(h *v1.LifecycleHandler, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	errs := validateHandler(h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep, path)
	return errs
}

// validateHandler is what probes and hooks share: exactly one way to act. Each of
// those given is checked all the same, so that its own mistakes show at once. The path of a
// second handler is the one that is blamed, as upstream.
func validateHandler(exec *v1.ExecAction, http *v1.HTTPGetAction, tcp *v1.TCPSocketAction, grpc *v1.GRPCAction, sleep *v1.SleepAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	// next counts the handlers and blames each after the first.
	next := func(name string) *field.Path {
		n++
		p := path.Child(name)
		if n > 1 {
			errs = append(errs, field.Forbidden(p, "may not specify more than 1 handler type"))
		}
		return p
	}
	if exec != nil {
		if p := next("exec"); len(exec.Command) == 0 {
			errs = append(errs, field.Required(p.Child("command"), ""))
		}
	}
	if http != nil {
		p := next("httpGet")
		if http.Path == "" {
			errs = append(errs, field.Required(p.Child("path"), ""))
		}
		errs = append(errs, validatePortRef(http.Port, p.Child("port"))...)
		errs = append(errs, fields.OneOf(http.Scheme, p.Child("scheme"), v1.URISchemeHTTP, v1.URISchemeHTTPS)...)
		for i, h := range http.HTTPHeaders {
			errs = append(errs, fields.Invalid(p.Child("httpHeaders").Index(i).Child("name"), h.Name, validation.IsHTTPHeaderName(h.Name))...)
		}
	}
	if tcp != nil {
		errs = append(errs, validatePortRef(tcp.Port, next("tcpSocket").Child("port"))...)
	}
	if grpc != nil {
		errs = append(errs, fields.Port(grpc.Port, next("grpc").Child("port"))...)
	}
	if sleep != nil {
		if p := next("sleep"); sleep.Seconds < 0 {
			errs = append(errs, field.Invalid(p.Child("seconds"), sleep.Seconds, notNegative))
		}
	}
	if n == 0 {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

// validatePortRef checks a port by number or name; that a container has the name is
// seen when it is used.
func validatePortRef(port intstr.IntOrString, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.Type == intstr.Int {
		errs = append(errs, fields.Invalid(path, port.IntValue(), validation.IsValidPortNum(port.IntValue()))...)
		return errs
	}
	errs = append(errs, fields.Invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))...)
	return errs
}
