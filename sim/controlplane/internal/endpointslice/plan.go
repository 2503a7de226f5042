package endpointslice

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// managedBy is the value of the label by which the controller knows its slices.
const managedBy = "endpointslice-controller.k8s.io"

// plan is what makes a service's slices what they should be. Its lists are disjoint: a slice is
// created, updated, removed or left alone.
type plan struct {
	create, update, remove []*discoveryv1.EndpointSlice
	events                 []event // about hints
	// err tells of pods that were left out because their node is unknown.
	err error
}

// planner computes a plan (k8s.io/endpointslice/reconciler.go). It makes no
// requests: what it returns is carried out by the controller, and tests compare
// plans. A planner is for one sync. Existing slices belong to the store and are never written to:
// what changes is a copy.
type planner struct {
	svc     *v1.Service
	max     int // endpoints per slice
	trigger time.Time
	node    func(name string) *v1.Node
	nodes   func() []*v1.Node
	// hints: of the service; nil is none, and keeps none.
	hints *hinted
	plan
}

// portGroup is the endpoints that have the same ports. A slice has one list of
// ports for all of its endpoints, so pods whose named ports differ need slices of
// their own.
type portGroup struct {
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
	slices    []*discoveryv1.EndpointSlice
}

// reconcile plans for all families. Slices of a family that the service no longer
// has are removed. Each family is planned by itself, as a slice has addresses of
// one. A family that is gone with its slices, and one that has come and begins with none, need no
// special care.
func (p *planner) reconcile(pods []*v1.Pod, existing []*discoveryv1.EndpointSlice) plan {
	families := addressTypes(p.svc)
	for _, es := range existing {
		wanted := false
		for _, f := range families {
			wanted = wanted || es.AddressType == f
		}
		if !wanted {
			p.remove = append(p.remove, es)
		}
	}
	for _, f := range families {
		p.family(f, pods, existing)
	}
	return p.plan
}

// family is reconcileByAddressType. The order of slices, oldest first, and of pods, by name,
// makes the outcome the same for the same state.
func (p *planner) family(family discoveryv1.AddressType, pods []*v1.Pod, existing []*discoveryv1.EndpointSlice) {
	groups := p.groups(family, pods)
	var done plan
	for _, es := range existing {
		if es.AddressType != family {
			continue
		}
		known := false
		for _, g := range groups {
			// A slice whose ports no pod has any more is removed, however many of its endpoints
			// are wanted: they come back in another.
			if known = ownedBy(es, p.svc) && samePorts(g.ports, es.Ports); known {
				g.slices = append(g.slices, es)
				break
			}
		}
		if !known {
			done.remove = append(done.remove, es)
		}
	}
	for _, g := range groups {
		p.group(family, g, &done)
	}
	if len(groups) == 0 {
		// Without pods there is no group, and so no list of ports either.
		p.placeholder(family, &done)
	}
	p.hint(family, unchanged(family, existing, &done), &done)
	p.finalize(&done)
	p.create = append(p.create, done.create...)
	p.update = append(p.update, done.update...)
	p.remove = append(p.remove, done.remove...)
}

// ownedBy reports whether a slice is this service's, not one of an earlier service of
// its name that the garbage collector is about to delete. Names may be the same; UIDs are not.
func ownedBy(es *discoveryv1.EndpointSlice, svc *v1.Service) bool {
	return slices.ContainsFunc(es.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == svc.UID && r.Kind == string(apiserver.KindService) && r.APIVersion == "v1"
	})
}

// unchanged returns the slices of a family that a plan leaves alone.
func unchanged(family discoveryv1.AddressType, existing []*discoveryv1.EndpointSlice, p *plan) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	touched := make(map[string]bool, len(p.update)+len(p.remove))
	for _, es := range p.update {
		touched[es.Name] = true
	}
	for _, es := range p.remove {
		touched[es.Name] = true
	}
	for _, es := range existing {
		if es.AddressType == family && !touched[es.Name] {
			out = append(out, es)
		}
	}
	return out
}

// groups makes the wanted endpoints, by their ports, in the order of the pods.
// Most services have one group, so the last one is tried before the others. A service with
// numeric target ports has one group always.
func (p *planner) groups(family discoveryv1.AddressType, pods []*v1.Pod) []*portGroup {
	var groups []*portGroup
	var last *portGroup
	for _, pod := range pods {
		address := podAddress(pod, family)
		if address == "" || !belongs(pod) {
			continue
		}
		node := p.node(pod.Spec.NodeName)
		// A node that isn't known yet may have a zone that the endpoint should carry; the error
		// has the sync repeated.
		if node == nil && !p.svc.Spec.PublishNotReadyAddresses {
			p.err = fmt.Errorf("skipping Pod %s for Service %s/%s: Node %s Not Found", pod.Name, p.svc.Namespace, p.svc.Name, pod.Spec.NodeName)
			continue
		}
		ports := portsOf(p.svc, pod)
		if last == nil || !samePorts(last.ports, ports) {
			last = nil
			for _, g := range groups {
				if samePorts(g.ports, ports) {
					last = g
				}
			}
			if last == nil {
				last = &portGroup{ports: ports}
				groups = append(groups, last)
			}
		}
		last.endpoints = append(last.endpoints, endpointOf(p.svc, pod, node, address))
	}
	return groups
}

// group is reconcileByPortMapping: slices lose what is no longer wanted and take
// what has changed; those that change anyway are filled up; the rest goes into
// the one unchanged slice that it fills best, or into new ones. New endpoints
// fill slices that are being updated anyway, then one that has room for all, then
// new ones: few requests matter more than full slices. wanted loses what was found in a slice;
// what is left in it is new. The steps follow upstream's reconcileByPortMapping.
func (p *planner) group(family discoveryv1.AddressType, g *portGroup, out *plan) {
	wanted := make(map[endpointKey]*discoveryv1.Endpoint, len(g.endpoints))
	for i := range g.endpoints {
		wanted[keyOf(&g.endpoints[i])] = &g.endpoints[i]
	}
	var changed, unchanged []*discoveryv1.EndpointSlice
	for _, es := range g.slices {
		kept, touched := keep(es.Endpoints, wanted)
		meta, relabelled := p.meta(es)
		switch {
		case len(kept) == 0:
			out.remove = append(out.remove, es)
		case touched || relabelled:
			c := *es
			c.ObjectMeta, c.Endpoints = meta, kept
			changed = append(changed, &c)
		default:
			unchanged = append(unchanged, es)
		}
	}
	var rest []discoveryv1.Endpoint
	for i := range g.endpoints {
		if _, ok := wanted[keyOf(&g.endpoints[i])]; ok {
			// The three-index slice makes append copy, so the stored slice's array stays as it
			// is.
			rest = append(rest, g.endpoints[i])
		}
	}
	// Fullest first: of two slices one gets full rather than both half.
	slices.SortStableFunc(changed, func(a, b *discoveryv1.EndpointSlice) int { return len(b.Endpoints) - len(a.Endpoints) })
	for _, es := range changed {
		n := min(p.max-len(es.Endpoints), len(rest))
		if n > 0 {
			es.Endpoints = append(es.Endpoints[:len(es.Endpoints):len(es.Endpoints)], rest[:n]...)
			rest = rest[n:]
		}
	}
	for len(rest) > 0 {
		if es := p.roomFor(unchanged, len(rest)); es != nil {
			c := *es
			c.ObjectMeta, _ = p.meta(es)
			c.Endpoints = append(es.Endpoints[:len(es.Endpoints):len(es.Endpoints)], rest...)
			changed = append(changed, &c)
			break
		}
		// Another slice with room for some of the rest is left alone: that would be one more
		// request.
		n := min(p.max, len(rest))
		es := p.newSlice(family, g.ports)
		es.Endpoints = rest[:n:n]
		out.create = append(out.create, es)
		rest = rest[n:]
	}
	out.update = append(out.update, changed...)
}

// keep returns those of a slice's endpoints that are wanted, as they should be,
// and takes them from wanted. The order of the endpoints in a slice stays.
func keep(have []discoveryv1.Endpoint, wanted map[endpointKey]*discoveryv1.Endpoint) (kept []discoveryv1.Endpoint, changed bool) {
	kept = make([]discoveryv1.Endpoint, 0, len(have))
	for i := range have {
		k := keyOf(&have[i])
		want, ok := wanted[k]
		switch {
		case !ok:
			changed = true
			continue
		case sameEndpoint(want, &have[i]):
			kept = append(kept, have[i])
		default:
			changed = true
			kept = append(kept, *want)
		}
		delete(wanted, k)
	}
	return kept, changed
}

// roomFor returns the slice that n more endpoints fill best, or nil
// (utils.go getSliceToFill). The fullest that fits, so that others stay open for more.
func (p *planner) roomFor(list []*discoveryv1.EndpointSlice, n int) (best *discoveryv1.EndpointSlice) {
	for _, es := range list {
		if len(es.Endpoints)+n <= p.max && (best == nil || len(es.Endpoints) > len(best.Endpoints)) {
			best = es
		}
	}
	return best
}

// placeholder keeps one empty slice for a service without endpoints. Its presence
// says that the service was looked at. An empty slice that is to be removed becomes it. It has no
// ports, as nobody knows them.
func (p *planner) placeholder(family discoveryv1.AddressType, out *plan) {
	for i, es := range out.remove {
		if len(es.Endpoints) == 0 && len(es.Ports) == 0 && ownedBy(es, p.svc) {
			out.remove = append(out.remove[:i:i], out.remove[i+1:]...)
			if meta, relabelled := p.meta(es); relabelled {
				c := *es
				c.ObjectMeta = meta
				out.update = append(out.update, &c)
			}
			return
		}
	}
	out.create = append(out.create, p.newSlice(family, []discoveryv1.EndpointPort{}))
}

// finalize has slices that are to go become those that are to come, as far as
// both last. That spares a deletion and a creation for one update. The name stays and so does the
// UID: to watchers it is an update.
func (p *planner) finalize(out *plan) {
	var remove []*discoveryv1.EndpointSlice
	for _, es := range out.remove {
		n := len(out.create)
		if n == 0 || !ownedBy(es, p.svc) {
			remove = append(remove, es)
			continue
		}
		c := *out.create[n-1]
		c.Name, c.GenerateName, c.ResourceVersion, c.UID = es.Name, es.GenerateName, es.ResourceVersion, es.UID
		out.create = out.create[:n-1]
		out.update = append(out.update, &c)
	}
	out.remove = remove
	// A service that is going gets no new slices.
	if p.svc.DeletionTimestamp != nil {
		out.create = nil
	}
}

// newSlice returns an empty slice of the service (utils.go newEndpointSlice). The service is the
// owner, so the garbage collector removes slices with it.
func (p *planner) newSlice(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	es := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Labels: p.labels(), GenerateName: namePrefix(p.svc.Name), Namespace: p.svc.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.svc, v1.SchemeGroupVersion.WithKind(string(apiserver.KindService)))},
		},
		AddressType: family, Ports: ports, Endpoints: []discoveryv1.Endpoint{},
	}
	es.Annotations = p.annotations(nil)
	return es
}

// namePrefix is the generateName of a service's slices. A name of the longest length cannot take
// a dash as well.
func namePrefix(service string) string {
	if prefix := service + "-"; len(validation.IsDNS1123Subdomain(prefix+"x")) == 0 {
		return prefix
	}
	return service
}

// labels returns the labels of the service's slices: its own but the reserved ones,
// and the controller's (utils.go setEndpointSliceLabels). Reserved labels that a user has put on
// the service are not passed on.
func (p *planner) labels() map[string]string {
	out := make(map[string]string, len(p.svc.Labels)+3)
	for k, v := range p.svc.Labels { //drydock:unordered copies a map
		switch k {
		case discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy, v1.IsHeadlessService:
		default:
			out[k] = v
		}
	}
	if p.svc.Spec.ClusterIP == v1.ClusterIPNone {
		out[v1.IsHeadlessService] = ""
	}
	out[discoveryv1.LabelServiceName] = p.svc.Name
	out[discoveryv1.LabelManagedBy] = managedBy
	return out
}

// meta returns a slice's metadata as it should be for an update, and whether labels
// differ; the annotation changes only with something else. A new trigger time alone is no reason
// to write a slice.
func (p *planner) meta(es *discoveryv1.EndpointSlice) (metav1.ObjectMeta, bool) {
	m := es.ObjectMeta
	want := p.labels()
	differ := !maps.Equal(want, m.Labels)
	m.Labels = want
	m.Annotations = p.annotations(m.Annotations)
	return m, differ
}

// annotations returns a copy with the time of the last trigger, or without it. Triggers are
// written to the nanosecond, in UTC, as upstream.
func (p *planner) annotations(have map[string]string) map[string]string {
	out := maps.Clone(have)
	if p.trigger.IsZero() {
		delete(out, v1.EndpointsLastChangeTriggerTime)
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	out[v1.EndpointsLastChangeTriggerTime] = p.trigger.UTC().Format(time.RFC3339Nano)
	return out
}
