package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

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
		if *g <= 0 {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
		}
		// It never ends a container, so there is no end to give time for.
		if name == "readinessProbe" {
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must not be set for readinessProbes"))
		}
	}
	if name != "readinessProbe" && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	return errs
}

// validateHook is validateLifecycle of one hook. A sleep may not be longer than the pod's
// grace period, which would cut it off (validateSleepAction).
func (c *checker) validateHook(h *v1.LifecycleHandler, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	errs := validateHandler(h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep, path)
	grace := c.spec.TerminationGracePeriodSeconds
	alone := h.Exec == nil && h.HTTPGet == nil && h.TCPSocket == nil
	if h.Sleep != nil && alone && grace != nil && (h.Sleep.Seconds < 0 || h.Sleep.Seconds > *grace) {
		errs = append(errs, field.Invalid(path.Child("sleep"), h.Sleep.Seconds,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace)))
	}
	return errs
}

// validateHandler is what probes and hooks share: exactly one way to act. A second one is
// refused, and not looked into.
func validateHandler(exec *v1.ExecAction, http *v1.HTTPGetAction, tcp *v1.TCPSocketAction, grpc *v1.GRPCAction, sleep *v1.SleepAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := true
	for _, h := range []struct {
		name  string
		set   bool
		check func(path *field.Path) field.ErrorList
	}{
		{"exec", exec != nil, func(p *field.Path) field.ErrorList {
			if len(exec.Command) > 0 {
				return nil
			}
			return field.ErrorList{field.Required(p.Child("command"), "")}
		}},
		{"httpGet", http != nil, func(p *field.Path) field.ErrorList { return validateHTTP(http, p) }},
		{"tcpSocket", tcp != nil, func(p *field.Path) field.ErrorList { return validatePortRef(tcp.Port, p.Child("port")) }},
		{"grpc", grpc != nil, func(p *field.Path) field.ErrorList {
			return validatePortRef(intstr.FromInt32(grpc.Port), p.Child("port"))
		}},
		{"sleep", sleep != nil, func(*field.Path) field.ErrorList { return nil }}, // see validateHook
	} {
		switch {
		case !h.set:
		case first:
			first = false
			errs = append(errs, h.check(path.Child(h.name))...)
		default:
			errs = append(errs, field.Forbidden(path.Child(h.name), "may not specify more than 1 handler type"))
		}
	}
	if first {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

// validateHTTP is validateHTTPGetAction.
func validateHTTP(http *v1.HTTPGetAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if http.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, validatePortRef(http.Port, path.Child("port"))...)
	errs = append(errs, fields.Supported(http.Scheme, path.Child("scheme"), v1.URISchemeHTTP, v1.URISchemeHTTPS)...)
	for _, h := range http.HTTPHeaders {
		errs = append(errs, fields.Invalid(path.Child("httpHeaders"), h.Name, validation.IsHTTPHeaderName(h.Name))...)
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
