package apiserver

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxConfigBytes is how much data a config map or a secret may hold.
const maxConfigBytes = 1 << 20

// validateObject checks a new, defaulted object but for its metadata.
func validateObject(obj Object, system bool) field.ErrorList {
	switch o := obj.(type) {
	case *v1.Pod:
		return validatePod(o)
	case *v1.Node:
		return validateNode(o)
	case *v1.ConfigMap:
		return validateConfigMap(o)
	case *v1.Secret:
		return validateSecret(o)
	case *v1.Service:
		return validateService(o)
	case *v1.Event:
		return validateEvent(o)
	case *coordinationv1.Lease:
		return validateLease(o)
	case *schedulingv1.PriorityClass:
		return validatePriorityClass(o, system)
	case *nodev1.RuntimeClass:
		return validateRuntimeClass(o)
	case *policyv1.PodDisruptionBudget:
		return validateDisruptionBudget(o)
	case *appsv1.Deployment:
		return validateDeployment(o)
	case *appsv1.ReplicaSet:
		return validateReplicaSet(o)
	case *appsv1.StatefulSet:
		return validateStatefulSet(o)
	case *appsv1.DaemonSet:
		return validateDaemonSet(o)
	case *appsv1.ControllerRevision:
		return validateControllerRevision(o)
	case *batchv1.Job:
		return validateJob(o)
	case *batchv1.CronJob:
		return validateCronJob(o, nil)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return validateHPA(o)
	case *discoveryv1.EndpointSlice:
		return validateEndpointSlice(o)
	}
	return nil
}

// validateUpdate checks a defaulted object that is to take old's place through
// a subresource.
func validateUpdate(obj, old Object, sub string) field.ErrorList {
	switch o := obj.(type) {
	case *v1.Pod:
		return validatePodUpdate(o, old.(*v1.Pod), sub)
	case *v1.Node:
		errs := validateNode(o)
		if was := old.(*v1.Node).Spec.ProviderID; was != "" && o.Spec.ProviderID != was {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change providerID except from \"\" to valid"))
		}
		return errs
	case *v1.ConfigMap:
		was := old.(*v1.ConfigMap)
		errs := validateConfigMap(o)
		if was.Immutable != nil && *was.Immutable {
			if o.Immutable == nil || !*o.Immutable {
				errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
			}
			errs = append(errs, frozen(o.Data, was.Data, "data")...)
			errs = append(errs, frozen(o.BinaryData, was.BinaryData, "binaryData")...)
		}
		return errs
	case *v1.Secret:
		was := old.(*v1.Secret)
		errs := append(validateSecret(o), immutable(o.Type, was.Type, field.NewPath("type"))...)
		if was.Immutable != nil && *was.Immutable {
			if o.Immutable == nil || !*o.Immutable {
				errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
			}
			errs = append(errs, frozen(o.Data, was.Data, "data")...)
		}
		return errs
	case *schedulingv1.PriorityClass:
		was := old.(*schedulingv1.PriorityClass)
		var errs field.ErrorList
		if o.Value != was.Value {
			errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
		}
		return append(errs, immutable(o.PreemptionPolicy, was.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	case *nodev1.RuntimeClass:
		return append(validateRuntimeClass(o), immutable(o.Handler, old.(*nodev1.RuntimeClass).Handler, field.NewPath("handler"))...)
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *appsv1.ControllerRevision:
		return validateAppsUpdate(obj, old, sub)
	case *batchv1.Job:
		if sub != "" {
			return nil
		}
		return validateJobUpdate(o, old.(*batchv1.Job))
	case *batchv1.CronJob:
		if sub != "" {
			return nil
		}
		return validateCronJob(o, old.(*batchv1.CronJob))
	case *discoveryv1.EndpointSlice:
		return append(validateEndpointSlice(o), immutable(o.AddressType, old.(*discoveryv1.EndpointSlice).AddressType, field.NewPath("addressType"))...)
	}
	return validateObject(obj, true)
}

func frozen(now, was any, name string) field.ErrorList {
	if len(immutable(now, was, field.NewPath(name))) > 0 {
		return field.ErrorList{field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set")}
	}
	return nil
}

func validateNode(n *v1.Node) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	type taintID struct {
		key    string
		effect v1.TaintEffect
	}
	seen := map[taintID]bool{}
	for i, t := range n.Spec.Taints {
		p := spec.Child("taints").Index(i)
		for _, msg := range validation.IsQualifiedName(t.Key) {
			errs = append(errs, field.Invalid(p.Child("key"), t.Key, msg))
		}
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, msg))
		}
		errs = append(errs, oneOf(t.Effect, p.Child("effect"), v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		id := taintID{t.Key, t.Effect}
		if seen[id] {
			errs = append(errs, field.Duplicate(p, fmt.Sprintf("%s:%s", t.Key, t.Effect)))
		}
		seen[id] = true
	}
	errs = append(errs, validateResourceMap(n.Status.Capacity, field.NewPath("status", "capacity"))...)
	return append(errs, validateResourceMap(n.Status.Allocatable, field.NewPath("status", "allocatable"))...)
}

func validateConfigMap(c *v1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, k := range sortedKeys(c.Data) {
		errs = append(errs, validateConfigKey(k, field.NewPath("data"))...)
		if _, ok := c.BinaryData[k]; ok {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(k), k, "duplicate of key present in binaryData"))
		}
		total += len(c.Data[k])
	}
	for _, k := range sortedKeys(c.BinaryData) {
		errs = append(errs, validateConfigKey(k, field.NewPath("binaryData"))...)
		total += len(c.BinaryData[k])
	}
	if total > maxConfigBytes {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxConfigBytes))
	}
	return errs
}

func validateSecret(s *v1.Secret) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, k := range sortedKeys(s.Data) {
		errs = append(errs, validateConfigKey(k, field.NewPath("data"))...)
		total += len(s.Data[k])
	}
	if total > maxConfigBytes {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", maxConfigBytes))
	}
	required := map[v1.SecretType][]string{
		v1.SecretTypeDockerConfigJson: {v1.DockerConfigJsonKey},
		v1.SecretTypeDockercfg:        {v1.DockerConfigKey},
		v1.SecretTypeTLS:              {v1.TLSCertKey, v1.TLSPrivateKeyKey},
	}
	for _, k := range required[s.Type] {
		if _, ok := s.Data[k]; !ok {
			errs = append(errs, field.Required(field.NewPath("data").Key(k), ""))
		}
	}
	return errs
}

func validateConfigKey(k string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsConfigMapKey(k) {
		errs = append(errs, field.Invalid(path.Key(k), k, msg))
	}
	return errs
}

func validateService(s *v1.Service) field.ErrorList {
	spec := field.NewPath("spec")
	errs := oneOf(s.Spec.Type, spec.Child("type"), v1.ServiceTypeClusterIP, v1.ServiceTypeExternalName, v1.ServiceTypeLoadBalancer, v1.ServiceTypeNodePort)
	if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP != v1.ClusterIPNone && s.Spec.Type != v1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	if s.Spec.Type == v1.ServiceTypeExternalName {
		errs = append(errs, dnsName(s.Spec.ExternalName, spec.Child("externalName"))...)
	}
	names := map[string]bool{}
	for i, p := range s.Spec.Ports {
		path := spec.Child("ports").Index(i)
		switch {
		case p.Name == "" && len(s.Spec.Ports) > 1:
			errs = append(errs, field.Required(path.Child("name"), ""))
		case p.Name != "":
			errs = append(errs, dnsLabel(p.Name, path.Child("name"))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, portRange(p.Port, path.Child("port"))...)
		errs = append(errs, oneOf(p.Protocol, path.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	if t := s.Spec.TrafficDistribution; t != nil {
		errs = append(errs, oneOf(*t, spec.Child("trafficDistribution"), v1.ServiceTrafficDistributionPreferClose,
			v1.ServiceTrafficDistributionPreferSameZone, v1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return append(errs, metavalidation.ValidateLabels(s.Spec.Selector, spec.Child("selector"))...)
}

func validateEvent(e *v1.Event) field.ErrorList {
	ns := e.InvolvedObject.Namespace
	if ns == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem ||
		ns != "" && ns != e.Namespace {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), ns, "does not match event.namespace")}
	}
	return nil
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil {
		errs = append(errs, nonNegative(int64(*n), spec.Child("leaseTransitions"))...)
	}
	return errs
}

func validatePriorityClass(pc *schedulingv1.PriorityClass, system bool) field.ErrorList {
	var errs field.ErrorList
	if !system {
		if strings.HasPrefix(pc.Name, "system-") {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only"))
		}
		if pc.Value > highestUserPriority {
			errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestUserPriority)))
		}
	}
	if pc.PreemptionPolicy != nil {
		errs = append(errs, oneOf(*pc.PreemptionPolicy, field.NewPath("preemptionPolicy"), v1.PreemptLowerPriority, v1.PreemptNever)...)
	}
	return errs
}
