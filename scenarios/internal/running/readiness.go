package running

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/timeline"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// readiness makes the lines that show who is ready where the records don't: of pods that another
// than their kubelet makes ready or not, and of Services' endpoints. A record of such a write says
// no more than "update", and records are hashed; so these lines are made beside them.
type readiness struct {
	services map[string]*endpoints    // by their names in records
	lines    map[uint64]*trace.Record // to follow the record of the write of that version
}

// endpoints are those of one Service, over all its slices of one address type: a pod of two
// stacks is in slices of both.
type endpoints struct {
	addresses            discoveryv1.AddressType
	slices, ready, total int
}

// traceReadiness has changes of readiness noted, if the timeline shows pods at all: each write
// of a pod costs a look then.
func (p *performance) traceReadiness() {
	j := &p.journal
	if j.many && !p.opts.Verbose || j.endless && p.opts.Timeline == nil || p.opts.Real != nil {
		return
	}
	j.ready = &readiness{services: map[string]*endpoints{}, lines: map[uint64]*trace.Record{}}
	p.cluster.Store().OnChange(func(c apiserver.Change) {
		if c.Kind == apiserver.KindPod {
			j.ready.pod(&c)
		} else {
			j.ready.slice(&c)
		}
	}, apiserver.KindPod, apiserver.KindEndpointSlice)
}

// pod notes a pod's status, if a write has changed whether it is ready. Patches of the status
// have records of their own.
func (r *readiness) pod(c *apiserver.Change) {
	if c.Old == nil || removed(c) || c.Verb == "patch" && c.Subresource == "status" {
		return
	}
	now := c.New.(*v1.Pod)
	if expect.PodReady(c.Old.(*v1.Pod)) == expect.PodReady(now) {
		return
	}
	r.lines[c.Version] = &trace.Record{Kind: trace.KindPod, Object: recordName(string(c.Kind), now.Namespace, now.Name), Verb: "status", Fields: apiserver.PodStatus(now)}
}

// slice counts the endpoints of a slice's Service, and notes them if another number of them is
// ready. A Service that has lost its last slice is gone.
func (r *readiness) slice(c *apiserver.Change) {
	now := c.New.(*discoveryv1.EndpointSlice)
	service := now.Labels[discoveryv1.LabelServiceName]
	if service == "" {
		return
	}
	name := recordName(string(apiserver.KindService), now.Namespace, service)
	e := r.services[name]
	if e == nil {
		e = &endpoints{addresses: now.AddressType}
		r.services[name] = e
	}
	if now.AddressType != e.addresses {
		return
	}
	before := e.ready
	if old, ok := c.Old.(*discoveryv1.EndpointSlice); ok && old.Labels[discoveryv1.LabelServiceName] == service {
		e.count(old, -1)
	}
	if !removed(c) {
		e.count(now, 1)
	}
	if e.slices == 0 {
		delete(r.services, name)
	} else if e.ready != before {
		r.lines[c.Version] = &trace.Record{Kind: timeline.KindService, Object: name, Verb: "endpoints",
			Fields: []trace.Field{trace.Str("ready", strconv.Itoa(e.ready)), trace.Str("total", strconv.Itoa(e.total))}}
	}
}

// count adds a slice's endpoints, or takes them off. One that doesn't say is ready, as the API
// defines it.
func (e *endpoints) count(s *discoveryv1.EndpointSlice, sign int) {
	e.slices += sign
	e.total += sign * len(s.Endpoints)
	for i := range s.Endpoints {
		if ready := s.Endpoints[i].Conditions.Ready; ready == nil || *ready {
			e.ready += sign
		}
	}
}

// follows returns the line that is to follow a record, if any.
func (r *readiness) follows(rec *trace.Record) *trace.Record {
	if r == nil || len(r.lines) == 0 || rec.Kind != trace.KindAPI {
		return nil
	}
	version, err := strconv.ParseUint(timeline.Field(rec.Fields, "version"), 10, 64)
	if err != nil {
		return nil
	}
	line := r.lines[version]
	if line != nil {
		delete(r.lines, version)
		line.At, line.Seq = rec.At, rec.Seq
	}
	return line
}
