package flow

import (
	"cmp"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Asker is who makes a request, as flow schemas see it.
type Asker struct {
	User   string
	Groups []string
	// Node is the node that a kubelet's lists are of.
	Node string
}

// Config is what flow control is configured by. The objects are read only.
type Config struct {
	Levels  []*flowcontrolv1.PriorityLevelConfiguration
	Schemas []*flowcontrolv1.FlowSchema
}

// Bootstrap returns the configuration that every API server begins with, in the order in
// which it makes the objects: what it can't do without, and what upstream suggests
// (k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap).
func Bootstrap() Config {
	return Config{
		Levels:  slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations),
		Schemas: slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas),
	}
}

// With returns the configuration with objects of another in the place of its own of the
// same names, and the others after them.
func (c Config) With(o Config) Config {
	return Config{Levels: overlay(c.Levels, o.Levels), Schemas: overlay(c.Schemas, o.Schemas)}
}

// named is what has a name.
type named interface{ GetName() string }

func overlay[T named](base, over []T) []T {
	out := slices.Clone(base)
	for _, o := range over {
		if i := slices.IndexFunc(out, func(b T) bool { return b.GetName() == o.GetName() }); i >= 0 {
			out[i] = o
		} else {
			out = append(out, o)
		}
	}
	return out
}

// complete returns the configuration as it acts: with what an API server can't do without,
// without schemas whose level isn't there, in the order in which they are matched
// (util/flowcontrol/apf_controller.go digestFlowSchemasLocked).
func (c Config) complete() Config {
	must := Config{Levels: bootstrap.MandatoryPriorityLevelConfigurations, Schemas: bootstrap.MandatoryFlowSchemas}
	out := must.With(c)
	out.Schemas = slices.DeleteFunc(out.Schemas, func(f *flowcontrolv1.FlowSchema) bool { return !out.HasLevel(f.Spec.PriorityLevelConfiguration.Name) })
	slices.SortFunc(out.Schemas, func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), strings.Compare(a.Name, b.Name))
	})
	return out
}

// HasLevel reports whether there is a priority level.
func (c Config) HasLevel(name string) bool {
	return slices.ContainsFunc(c.Levels, func(l *flowcontrolv1.PriorityLevelConfiguration) bool { return l.Name == name })
}

// schemaOf returns the first schema that a request matches. The last matches all that are
// authenticated or not.
func (f *Control) schemaOf(who *Asker, r *wire.Request) *flowcontrolv1.FlowSchema {
	for _, s := range f.schemas {
		for i := range s.Spec.Rules {
			if f.matches(&s.Spec.Rules[i], who, r) {
				return s
			}
		}
	}
	return bootstrap.MandatoryFlowSchemaCatchAll
}

// matches is matchesPolicyRule (util/flowcontrol/rule.go) for requests about resources:
// others never get to the cluster's loop.
func (f *Control) matches(rule *flowcontrolv1.PolicyRulesWithSubjects, who *Asker, r *wire.Request) bool {
	if len(rule.ResourceRules) == 0 || !slices.ContainsFunc(rule.Subjects, who.is) {
		return false
	}
	for i := range rule.ResourceRules {
		rr := &rule.ResourceRules[i]
		if has(rr.Verbs, r.Verb, flowcontrolv1.VerbAll) && has(rr.Resources, r.Resource, flowcontrolv1.ResourceAll) &&
			(all(rr.APIGroups, flowcontrolv1.APIGroupAll) || has(rr.APIGroups, f.group(r), flowcontrolv1.APIGroupAll)) &&
			(r.Namespace == "" && rr.ClusterScope || r.Namespace != "" && has(rr.Namespaces, r.Namespace, flowcontrolv1.NamespaceEvery)) {
			return true
		}
	}
	return false
}

// group is the API group of what a request is about.
func (f *Control) group(r *wire.Request) string {
	if r.Group != "" {
		return r.Group
	}
	resource, _, _ := strings.Cut(r.Resource, "/")
	return f.stored.GroupOf(resource)
}

// is reports whether a subject of a rule is who asks.
func (a *Asker) is(s flowcontrolv1.Subject) bool {
	switch {
	case s.User != nil:
		return s.User.Name == flowcontrolv1.NameAll || s.User.Name == a.User
	case s.Group != nil:
		return s.Group.Name == flowcontrolv1.NameAll || slices.Contains(a.Groups, s.Group.Name)
	case s.ServiceAccount != nil && s.ServiceAccount.Name != flowcontrolv1.NameAll:
		return serviceaccount.MatchesUsername(s.ServiceAccount.Namespace, s.ServiceAccount.Name, a.User)
	case s.ServiceAccount != nil:
		rest, ok := strings.CutPrefix(a.User, serviceaccount.ServiceAccountUsernamePrefix)
		namespace, _, account := strings.Cut(rest, ":")
		return ok && account && namespace == s.ServiceAccount.Namespace
	}
	return false
}

// has reports whether a list has what is asked for, or consists of the word for everything.
func has(list []string, x, everything string) bool {
	return all(list, everything) || slices.Contains(list, x)
}

func all(list []string, everything string) bool { return len(list) == 1 && list[0] == everything }

// distinguisher says which of a schema's flows a request belongs to
// (util/flowcontrol/apf_filter.go computeFlowDistinguisher).
func distinguisher(s *flowcontrolv1.FlowSchema, who *Asker, r *wire.Request) string {
	switch m := s.Spec.DistinguisherMethod; {
	case m == nil:
		return ""
	case m.Type == flowcontrolv1.FlowDistinguisherMethodByUserType:
		return who.User
	default:
		return r.Namespace
	}
}
