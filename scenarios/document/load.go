package document

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// LoadOptions say how scenarios are loaded. The zero value loads files as they
// are.
type LoadOptions struct {
	// Set overrides parts of the documents: `spec.nodes[*].count=5`, see
	// docs/scenarios.md. They are applied in their order.
	Set []string
	// ValidateObject says what the API would refuse of an object of a
	// manifest; it gets a copy. Nil means what the simulated API refuses.
	ValidateObject func(runtime.Object) field.ErrorList
	// ValidateKubelet says what a kubelet would refuse of its configuration.
	// It gets a copy. Nil means what the simulated kubelet refuses.
	ValidateKubelet func(*kubeletconfig.KubeletConfiguration) field.ErrorList
	// ReadFile reads files; nil means from disk, up to 32 MiB each.
	ReadFile func(name string) ([]byte, error)
	// ReadDir returns the manifests of a directory, by path; nil of what is no
	// directory. Nil means from disk if ReadFile is nil, too, else that there are none.
	ReadDir func(name string) ([]string, error)
	// Compiler compiles the expectations; nil means a new one. One compiler
	// may serve many loads, one at a time.
	Compiler *expect.Compiler
}

// Parse reads the scenarios of a file's text; files that it names are relative to
// that of the given name, and read by the options' ReadFile, which must be set.
// What is wrong comes back as decode.Errors, all of it at once.
func Parse(file string, data []byte, opts LoadOptions) ([]*Scenario, error) {
	if opts.ValidateKubelet == nil {
		opts.ValidateKubelet = refusedByKubelet
	}
	if opts.Compiler == nil {
		c, err := expect.NewCompiler()
		if err != nil {
			return nil, err
		}
		opts.Compiler = c
	}
	l := newLoader(opts)
	var out []*Scenario
	docs := l.r.Documents(file, data)
	if len(docs) == 0 && l.r.Err() == nil {
		l.r.Fail(file, "there is no scenario in this file")
	}
	names := map[string]int{}
	for _, at := range docs {
		l.r.Override(at, opts.Set)
		s := l.scenario(at)
		if s == nil {
			continue
		}
		if line := names[s.Metadata.Name]; line > 0 {
			at.Field("metadata").Field("name").Errorf("the scenario on line %d is called %q too", line, s.Metadata.Name)
		}
		names[s.Metadata.Name] = at.Line()
		out = append(out, s)
	}
	if err := l.r.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// loader loads the documents of a file: decoding finds what wants to be checked,
// and the checks run once the document is whole.
type loader struct {
	r    *decode.Reader
	opts LoadOptions
	// checks are those of the document's parts, each before those of what is in
	// it: what a part fills in, its own parts can rely on.
	checks []func(*value.Scope)
	// objects are the Kubernetes objects of the document and of the files that
	// it names.
	objects []placedObject
	notices notices
}

type placedObject struct {
	runtime.Object
	at decode.Place
}

func newLoader(opts LoadOptions) *loader {
	l := &loader{r: decode.NewReader(opts.ReadFile), opts: opts}
	l.r.Found, l.r.ReadDir = l.found, opts.ReadDir
	return l
}

// found notes what wants to be checked.
func (l *loader) found(v any, at decode.Place) {
	switch x := v.(type) {
	case value.Written:
		l.objects = append(l.objects, placedObject{x.Object, at})
	case value.Notice:
		l.notices.say(string(x))
	case value.Dropped:
		l.notices.drop(at, x)
	case value.Undefined:
		l.notices.custom = append(l.notices.custom, x)
	case *kubeletconfig.KubeletConfiguration:
		l.checks = append(l.checks, func(*value.Scope) { l.checkKubelet(at, x) })
	case *schedulerconfigv1.KubeSchedulerConfiguration:
		l.checks = append(l.checks, func(*value.Scope) {
			checkScheduler(at, x)
			for _, text := range schedulerconfig.NoEffect(x) {
				l.notices.say("scheduler configuration: " + text)
			}
		})
	case *Expectation:
		l.checks = append(l.checks, func(s *value.Scope) { x.check(at, s, l.opts.Compiler) })
	case *Action:
		l.checks = append(l.checks, func(s *value.Scope) { x.check(at, s) })
	case *now:
		l.checks = append(l.checks, func(s *value.Scope) { x.check(at, s) })
	case interface{ Check(at decode.Place) }:
		l.checks = append(l.checks, func(*value.Scope) { x.Check(at) })
	}
}

// scenario decodes and checks one document; nil if it is not worth looking at.
func (l *loader) scenario(at decode.Place) *Scenario {
	if !at.IsMapping() {
		at.Mismatch("a scenario")
		return nil
	}
	// A document of another kind would give an error for each of its fields.
	kind, version := at.Field("kind"), at.Field("apiVersion")
	switch {
	case !kind.Written() || !version.Written():
		at.Refuse("a scenario begins with apiVersion: %s and kind: %s", APIVersion, Kind)
		return nil
	case !says(kind, Kind) || !says(version, APIVersion):
		return nil
	}
	s := l.decode(at)
	scope := s.scope(at)
	for _, check := range l.checks {
		check(scope)
	}
	if n := s.PodCount(); n > value.MaxPods {
		at.Field("spec").Field("timeline").Errorf("creates %d objects and pods, more than %d", n, value.MaxPods)
	}
	s.checkConformance(at.Field("spec"), scope, l.objects)
	l.checkObjects(s.Spec.API.Gates())
	l.checkReferences(s)
	s.Notices = l.notices.all(l.objects, s.Spec.API.Load != nil)
	return s
}

// checkObjects asks what the API would refuse of the objects.
func (l *loader) checkObjects(on apiserver.Gates) {
	refused := l.opts.ValidateObject
	if refused == nil {
		refused = func(o runtime.Object) field.ErrorList { return refusedByAPI(o, on) }
	}
	for _, o := range l.objects {
		for _, e := range refused(o.DeepCopyObject()) {
			o.at.Path(e.Field).Errorf("%s", e.ErrorBody())
		}
	}
}

// says reports whether a field has the only text that it may have.
func says(at decode.Place, want string) bool {
	text, _ := at.Scalar()
	if text != want {
		at.Refuse("must be %s, not %q", want, decode.Short(text))
	}
	return text == want
}

// decode decodes a document. What could not be decoded is not checked.
func (l *loader) decode(at decode.Place) *Scenario {
	s := &Scenario{Pos: at.Pos(), doc: at}
	l.checks, l.objects, l.notices = nil, nil, notices{}
	before := at.Errors()
	at.Decode(s)
	at.Settle(before)
	return s
}

// checkKubelet asks what a kubelet would refuse of its configuration.
func (l *loader) checkKubelet(at decode.Place, c *kubeletconfig.KubeletConfiguration) {
	for _, x := range []struct{ name, is, want string }{{"apiVersion", c.APIVersion, kubeletconfig.SchemeGroupVersion.String()}, {"kind", c.Kind, "KubeletConfiguration"}} {
		if x.is != "" && x.is != x.want {
			at.Field(x.name).Errorf("must be %s, not %q", x.want, decode.Short(x.is))
		}
	}
	for _, e := range l.opts.ValidateKubelet(c.DeepCopy()) {
		at.Path(e.Field).Errorf("%s%s", e.ErrorBody(), nearSignal(e.Detail))
	}
}

// What is meant where a scenario says nothing, and what bounds it.
const (
	defaultDuration       = 10 * time.Minute
	defaultKubeletRestart = 10 * time.Second
	// maxNodes is how many nodes a large machine's memory holds.
	maxNodes = 100_000
)

// scope checks what the parts of a document ask of it: how long it lasts, and its
// nodes' names. It runs before any other check.
func (s *Scenario) scope(at decode.Place) *value.Scope {
	spec, sp := at.Field("spec"), &s.Spec
	if n := s.Metadata.Name; n != "" {
		if msgs := validation.IsDNS1123Subdomain(n); len(msgs) > 0 {
			at.Field("metadata").Field("name").Errorf("%q is no name: %s", decode.Short(n), msgs[0])
		}
	}
	duration := spec.Field("duration")
	if sp.Duration == 0 {
		if duration.Written() {
			duration.Errorf("must be more than 0s")
		}
		sp.Duration = defaultDuration
	}
	if duration.Bad() {
		sp.Duration = decode.MaxDuration // nothing is too late
	}
	if sp.KubeletRestart == nil {
		sp.KubeletRestart = &KubeletRestart{After: defaultKubeletRestart}
	}
	nodes := s.checkNodes(spec.Field("nodes"))
	return &value.Scope{Duration: sp.Duration, Nodes: nodes, Imagefs: s.imagefs()}
}

// imagefs reports of nodes whether they have a file system of their own for images.
func (s *Scenario) imagefs() func(node string) bool {
	has := map[string]bool{}
	for i := range s.Spec.Nodes {
		if g := &s.Spec.Nodes[i]; g.imagefs() {
			for _, n := range g.NodeNames() {
				has[n] = true
			}
		}
	}
	return func(node string) bool { return has[node] }
}

// checkNodes checks the nodes' names and number, and returns the names; none if
// the document is wrong about one of them. A count that is wrong becomes 1.
func (s *Scenario) checkNodes(at decode.Place) []string {
	nodes := s.Spec.Nodes
	if len(nodes) == 0 && at.Written() {
		at.Errorf("there must be at least one node")
	}
	var names []string
	seen, total, bad := map[string]decode.Place{}, 0, false
	for i := range nodes {
		g, at := &nodes[i], at.Index(i)
		name, count := at.Field("name"), at.Field("count")
		bad = bad || name.Bad() || count.Bad()
		if g.Name != "" {
			if msgs := validation.IsDNS1123Subdomain(g.Name); len(msgs) > 0 {
				name.Errorf("%q is no node name: %s", decode.Short(g.Name), msgs[0])
			}
		}
		one := 1
		if g.Count != nil && (*g.Count < 1 || *g.Count > maxNodes) {
			count.Errorf("%d is not within 1 and %d", *g.Count, maxNodes)
			g.Count = &one
		}
		n := 1
		if g.Count != nil {
			n = *g.Count
		}
		if total += n; total > maxNodes {
			count.Errorf("makes %d nodes with the groups before, more than %d", total, maxNodes)
			total, g.Count = 0, &one
		}
		for _, n := range g.NodeNames() {
			if other, ok := seen[n]; ok {
				name.Errorf("there is a node %q in %s too", n, other)
				break
			}
			seen[n] = at
			names = append(names, n)
		}
	}
	if bad {
		return nil
	}
	return names
}

// nearSignal is what somebody meant who misspelt an eviction signal.
func nearSignal(detail string) string {
	signal, ok := strings.CutPrefix(detail, "unsupported eviction signal ")
	if !ok {
		return ""
	}
	return suggest.Suffix(signal, []string{
		"memory.available", "allocatableMemory.available", "pid.available", "nodefs.available", "nodefs.inodesFree",
		"imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree",
	})
}
