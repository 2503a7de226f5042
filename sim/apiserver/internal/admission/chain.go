package admission

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// Request is one write as admission sees it.
type Request struct {
	Operation   admissionv1.Operation
	Kind        *kind.Info
	Subresource string
	// Namespace and Name are those of the object. Of one that is made from a
	// generateName, the name is there already; errors of Mutate say [Name].
	Namespace, Name string
	// Object is what is to be stored, and Mutate's to write to; nil: it is deleted.
	// Old is what is stored; nil: the object is new.
	Object, Old kind.Object
	// DryRun says that nothing comes of the request.
	DryRun bool
	Now    time.Time
	// Options are what came with the request: *metav1.CreateOptions or the like; nil:
	// it came without.
	Options any
	Caller  *Caller
	// named says that a name was generated, if one was to be: it is when a request is
	// validated, and errors say it then.
	named bool
}

// Caller is who makes a request, and what hears what is said beside the answer.
type Caller struct {
	User authenticationv1.UserInfo
	// Warn says a warning to who makes the request, Audit adds an annotation to the
	// record of it; nil: nobody hears it.
	Warn  func(text string)
	Audit func(key, value string)
	// Calls are what came of webhooks; nil: nobody can call them.
	Calls *Calls
}

// Warn says a warning to who makes the request.
func (r *Request) Warn(text string) {
	if r.Caller != nil && r.Caller.Warn != nil {
		r.Caller.Warn(text)
	}
}

// Audit adds an annotation to the record of the request.
func (r *Request) Audit(key, value string) {
	if r.Caller != nil && r.Caller.Audit != nil {
		r.Caller.Audit(key, value)
	}
}

// Plugin is one link of the chain.
type Plugin struct {
	// Name is upstream's.
	Name string
	// Kinds and Operations are those that it is for. No kinds: all.
	Kinds      []kind.Kind
	Operations []admissionv1.Operation
	// Subresources are those that it is for, with "" for the object itself. None: the
	// object itself. "*": all.
	Subresources []string
	// Stamped says that it is asked about each pod that is made of a template, not
	// about the template only: what it decides depends on more than makes a template
	// stale (Info.ReadByAdmission).
	Stamped bool
	// Idle reports that there is nothing that the plugin goes by. Nil: it never is.
	Idle func() bool
	// Mutate may change the object, Validate may not. Either may be nil, and either
	// may refuse the request.
	Mutate, Validate func(*Request) error
}

// wants reports whether the plugin is for such requests.
func (p *Plugin) wants(op admissionv1.Operation, k kind.Kind, sub string) bool {
	return slices.Contains(p.Operations, op) && (len(p.Kinds) == 0 || slices.Contains(p.Kinds, k)) &&
		(len(p.Subresources) == 0 && sub == "" || slices.Contains(p.Subresources, sub) || slices.Contains(p.Subresources, "*"))
}

// Chain are the plugins that are for requests of one sort, in upstream's order.
type Chain []*Plugin

// chainKey is what the plugins of a request depend on.
type chainKey struct {
	op    admissionv1.Operation
	kind  kind.Kind
	sub   string
	which which
}

// which of the plugins for a kind are asked.
type which int

const (
	all which = iota
	// ofTemplates are those asked of a template of pods, stamped those asked about each
	// pod made of it.
	ofTemplates
	stamped
)

// Plugins are the admission plugins of a cluster.
type Plugins struct {
	cluster       Cluster
	all           []*Plugin
	chains        map[chainKey]Chain
	taintNewNodes bool // see TaintNewNodes
	policies      *policies
	webhooks      *webhooks
	labelled      labelled
	// serviceAccounts: see UseServiceAccounts.
	serviceAccounts bool
}

// NewPlugins returns the plugins that are on by default.
func NewPlugins(cluster Cluster) *Plugins {
	p := &Plugins{cluster: cluster, chains: map[chainKey]Chain{}, labelled: labelled{}}
	p.policies = &policies{cluster: cluster, validating: map[string]compiled[*policy.Validating]{}, mutating: map[string]compiled[*policy.Mutating]{}}
	p.webhooks = &webhooks{cluster: cluster, conditions: map[string]compiled[*policy.Conditions]{}}
	p.all = p.inOrder()
	return p
}

// Chain returns the plugins for requests of a sort.
func (p *Plugins) Chain(op admissionv1.Operation, k kind.Kind, sub string) Chain {
	return p.chain(chainKey{op: op, kind: k, sub: sub})
}

// StampedChain returns the plugins that are asked about each pod made of a template.
func (p *Plugins) StampedChain(pod kind.Kind) Chain {
	return p.chain(chainKey{op: admissionv1.Create, kind: pod, which: stamped})
}

// TemplateChain returns the plugins that are asked about a template of pods: those that
// are not asked about each pod made of it.
func (p *Plugins) TemplateChain(pod kind.Kind) Chain {
	return p.chain(chainKey{op: admissionv1.Create, kind: pod, which: ofTemplates})
}

func (p *Plugins) chain(key chainKey) Chain {
	c, ok := p.chains[key]
	if !ok {
		for _, one := range p.all {
			if one.wants(key.op, key.kind, key.sub) && (key.which == all || one.Stamped == (key.which == stamped)) {
				c = append(c, one)
			}
		}
		p.chains[key] = c
	}
	return c
}

// Idle reports whether none of the plugins has anything to go by.
func (c Chain) Idle() bool {
	return !slices.ContainsFunc(c, func(p *Plugin) bool { return p.Idle == nil || !p.Idle() })
}

// Mutate has each plugin change the request's object. The error is the first that
// refuses it.
func (c Chain) Mutate(r *Request) error {
	return c.each(r, func(p *Plugin) func(*Request) error { return p.Mutate })
}

// Validate has each plugin look at the request as it will be stored.
func (c Chain) Validate(r *Request) error {
	r.named = true
	return c.each(r, func(p *Plugin) func(*Request) error { return p.Validate })
}

func (c Chain) each(r *Request, of func(*Plugin) func(*Request) error) error {
	for _, p := range c {
		fn := of(p)
		if fn == nil || p.Idle != nil && p.Idle() {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}
