package runopts

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/envvars"
	"github.com/drydock-sim/drydock/kubelet/internal/fieldpath"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/expansion"
)

// maxEnvFileKey is the longest key that a fileKeyRef may name, in bytes.
const maxEnvFileKey = 128

// environment is the container's environment, sorted by name: the variables of
// services, over them those of envFrom, over them those of env, in which a value
// may refer to what is known by then (upstream makeEnvironmentVariables).
func (r *request) environment(ctx context.Context) ([]*runtimeapi.KeyValue, error) {
	if r.pod.Spec.EnableServiceLinks == nil {
		return nil, errors.New("nil pod.spec.enableServiceLinks encountered, cannot construct envvars")
	}
	if s := r.g.o.Services; s != nil && !kubetypes.IsStaticPod(r.pod) && !s.HasSynced() {
		return nil, errors.New("services have not yet been read at least once, cannot construct envvars")
	}
	services := r.g.serviceVariables(r.pod.Namespace, *r.pod.Spec.EnableServiceLinks)
	if len(r.c.EnvFrom) == 0 && len(r.c.Env) == 0 {
		return services.list, nil
	}
	e := &environment{
		r: r, own: make(map[string]string, len(r.c.Env)), services: services.values,
		configMaps: readOnce[v1.ConfigMap]{kind: "configMap", objects: r.g.o.ConfigMaps},
		secrets:    readOnce[v1.Secret]{kind: "secret", objects: r.g.o.Secrets},
	}
	if err := e.addSources(ctx); err != nil {
		return nil, err
	}
	for i := range r.c.Env {
		if err := e.add(ctx, &r.c.Env[i]); err != nil {
			return nil, err
		}
	}
	return e.list(services.list), nil
}

// environment is a container's environment in the making.
type environment struct {
	r          *request
	own        map[string]string // set so far
	services   map[string]string
	configMaps readOnce[v1.ConfigMap]
	secrets    readOnce[v1.Secret]
}

// list merges what was set with the service variables, by name. The variables
// of services are shared by all containers of the namespace, the others are
// new.
func (e *environment) list(services []*runtimeapi.KeyValue) []*runtimeapi.KeyValue {
	out := make([]*runtimeapi.KeyValue, 0, len(e.own)+len(services))
	for k, v := range e.own { //drydock:unordered sorted below
		out = append(out, &runtimeapi.KeyValue{Key: k, Value: []byte(v)})
	}
	for _, kv := range services {
		if _, ok := e.own[kv.Key]; !ok {
			out = append(out, kv)
		}
	}
	slices.SortFunc(out, func(a, b *runtimeapi.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// lookup finds what a $(NAME) stands for at this point: later variables of env
// aren't known yet.
func (e *environment) lookup(name string) (string, bool) {
	if v, ok := e.own[name]; ok {
		return v, true
	}
	v, ok := e.services[name]
	return v, ok
}

// addSources adds what envFrom names, in its order.
// A later source wins over an earlier one. A key that is no valid name is taken
// all the same, as the gate RelaxedEnvironmentVariableValidation has it.
func (e *environment) addSources(ctx context.Context) error {
	ns := e.r.pod.Namespace
	for i := range e.r.c.EnvFrom {
		from := &e.r.c.EnvFrom[i]
		switch {
		case from.ConfigMapRef != nil:
			cm, err := e.configMaps.get(ctx, ns, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
			if err != nil {
				return err
			}
			if cm == nil {
				continue
			}
			for k, v := range cm.Data { //drydock:unordered keys of one map differ
				e.own[from.Prefix+k] = v
			}
		case from.SecretRef != nil:
			s, err := e.secrets.get(ctx, ns, from.SecretRef.Name, from.SecretRef.Optional)
			if err != nil {
				return err
			}
			if s == nil {
				continue
			}
			for k, v := range s.Data { //drydock:unordered keys of one map differ
				e.own[from.Prefix+k] = string(v)
			}
		}
	}
	return nil
}

// readOnce reads each object of one kind, of the pod's namespace, at most once
// for an environment, so that its variables agree with each other.
type readOnce[T any] struct {
	kind    string
	objects Objects[*T]
	have    map[string]*T
}

// get returns nil for an object that is missing and may be.
func (r *readOnce[T]) get(ctx context.Context, namespace, name string, optional *bool) (*T, error) {
	if o := r.have[name]; o != nil {
		return o, nil
	}
	if r.objects == nil {
		return nil, errNoClient(r.kind, namespace, name)
	}
	o, err := r.objects.Get(ctx, namespace, name)
	if err != nil {
		if ptr.Deref(optional, false) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if r.have == nil {
		r.have = map[string]*T{}
	}
	r.have[name] = o
	return o, nil
}

// add sets one variable of env.
func (e *environment) add(ctx context.Context, v *v1.EnvVar) error {
	switch {
	case v.Value != "" || v.ValueFrom == nil:
		e.own[v.Name] = expansion.Expand(v.Value, e.lookup)
		return nil
	default:
		value, set, err := e.value(ctx, v.ValueFrom)
		if err != nil || !set {
			return err
		}
		e.own[v.Name] = value
		return nil
	}
}

// value is what a reference reads; set is false if it leads nowhere and may.
func (e *environment) value(ctx context.Context, from *v1.EnvVarSource) (value string, set bool, err error) {
	ns := e.r.pod.Namespace
	switch {
	case from.FieldRef != nil:
		value, err = e.r.field(from.FieldRef)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = fieldpath.ResourceValue(from.ResourceFieldRef, e.r.pod, e.r.c, e.r.g.allocatable())
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		cm, err := e.configMaps.get(ctx, ns, ref.Name, ref.Optional)
		if cm == nil || err != nil {
			return "", false, err
		}
		value, ok := cm.Data[ref.Key]
		if !ok && !ptr.Deref(ref.Optional, false) {
			return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, ns, ref.Name)
		}
		return value, ok, nil
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		s, err := e.secrets.get(ctx, ns, ref.Name, ref.Optional)
		if s == nil || err != nil {
			return "", false, err
		}
		data, ok := s.Data[ref.Key]
		if !ok && !ptr.Deref(ref.Optional, false) {
			return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, ns, ref.Name)
		}
		return string(data), ok, nil
	case from.FileKeyRef != nil:
		return e.r.fileKey(from.FileKeyRef)
	}
	return "", true, nil
}

// fileKey reads a variable from a file in one of the pod's volumes (gate
// EnvFiles).
// What failed is not said, so that nothing of the file gets into a status.
func (r *request) fileKey(ref *v1.FileKeySelector) (value string, set bool, err error) {
	vol, ok := r.volumes()[ref.VolumeName]
	if !ok || vol.Path == "" {
		return "", false, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	if len(ref.Key) > maxEnvFileKey {
		return "", false, fmt.Errorf("environment variable key %q exceeds maximum length of %d characters", ref.Key, maxEnvFileKey)
	}
	// The path stays below the volume, whatever it says.
	data, err := r.g.o.FS.ReadFile(path.Join(vol.Path, path.Clean("/"+ref.Path)))
	if err == nil {
		value, err = parseEnvFile(string(data), ref.Key)
	}
	if err != nil {
		return "", false, errors.New("couldn't parse env file")
	}
	if value != "" {
		return value, true, nil
	}
	if !ptr.Deref(ref.Optional, false) {
		return "", false, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, ref.Path)
	}
	return "", false, nil
}

// field is the value of one of the pod's fields.
// The pod's addresses are the sandbox's, which the pod's status doesn't have
// yet; the other fields are those of its object (upstream
// podFieldSelectorRuntimeValue).
func (r *request) field(ref *v1.ObjectFieldSelector) (string, error) {
	name, err := fieldpath.ConvertDownwardAPIFieldLabel(ref.APIVersion, ref.FieldPath)
	if err != nil {
		return "", err
	}
	switch name {
	case "spec.nodeName":
		return r.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return r.pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		ips := r.g.hostIPs()
		if len(ips) == 0 {
			return "", errors.New("host IP unknown; known addresses: []")
		}
		if name == "status.hostIP" {
			return ips[0], nil
		}
		return strings.Join(ips, ","), nil
	case "status.podIP":
		if len(r.podIPs) == 0 {
			return "", nil
		}
		return r.podIPs[0], nil
	case "status.podIPs":
		return strings.Join(r.podIPs, ","), nil
	}
	pod := r.pod
	if r.g.o.Annotated != nil && strings.HasPrefix(name, "metadata.annotations") {
		pod = r.g.o.Annotated(pod)
	}
	return fieldpath.ExtractFieldPathAsString(pod, name)
}

// hostIPs are the node's addresses as text, the first one first.
func (g *Generator) hostIPs() []string {
	if g.o.HostIPs == nil {
		return nil
	}
	list := g.o.HostIPs()
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].IP
	}
	return out
}

// allocatable is what the node has for pods: it stands for a limit that a
// container doesn't set.
func (g *Generator) allocatable() v1.ResourceList {
	if g.o.Allocatable == nil {
		return nil
	}
	return g.o.Allocatable()
}

// serviceVariables are the service variables of a namespace's pods.
type serviceVariables struct {
	list   []*runtimeapi.KeyValue
	values map[string]string
}

// serviceKey decides the service variables: which namespace's services, and
// whether they are wanted (enableServiceLinks).
type serviceKey struct {
	namespace string
	links     bool
}

// serviceCache keeps the variables until the services change.
// The list of services is another one after each change, so its address says
// whether the variables are still good.
type serviceCache struct {
	of    []*v1.Service
	byKey map[serviceKey]*serviceVariables
}

// noServices is shared, and never written to.
var noServices = &serviceVariables{}

// serviceVariables returns the variables for pods of a namespace, made at most
// once for each change of the services.
func (g *Generator) serviceVariables(namespace string, links bool) *serviceVariables {
	if g.o.Services == nil {
		return noServices
	}
	all := g.o.Services.Services()
	if len(all) == 0 {
		return noServices
	}
	c := &g.services
	if len(c.of) != len(all) || &c.of[0] != &all[0] {
		*c = serviceCache{of: all, byKey: map[serviceKey]*serviceVariables{}}
	}
	k := serviceKey{namespace, links}
	v := c.byKey[k]
	if v == nil {
		v = noServices
		if list := envvars.ForPod(all, namespace, links); len(list) > 0 {
			v = &serviceVariables{values: make(map[string]string, len(list))}
			for i := range list {
				v.values[list[i].Name] = list[i].Value
				v.list = append(v.list, &runtimeapi.KeyValue{Key: list[i].Name, Value: []byte(list[i].Value)})
			}
		}
		c.byKey[k] = v
	}
	return v
}
