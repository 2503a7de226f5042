package scale

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/kubelet/noeffect"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// generator makes the pods of a workload. It lives on the API's loop. made and
// wanted count pods of the start; what churn and arrivals add is not in them.
type generator struct {
	r       *driver
	w       *Workload
	classes []*class
	// byName: by namespace/name; only read once the run began.
	byName map[string]*Class
	wanted int
	made   int
	nodes  []string // for bound pods
	// pool has the pods that churn picks from; some may be gone.
	pool []member
	// most: of the pool, before those that are gone are dropped.
	most  int
	churn uint64 // draws
	// controllers tells that some pods are made by controllers.
	controllers bool
}

// class is a class with what it has come to. Numbers go on from the first pods to
// those that arrive later, so no name comes twice.
type class struct {
	*Class
	index     int32
	want      int // at first
	made      int
	next      uint64 // the next pod's number
	arrivals  uint64 // draws
	templates map[amounts]*apiserver.Template
}

// maxTemplates bounds how many templates of a class are remembered: its requests
// may be spread over orders of magnitude.
const maxTemplates = 4096

// member is one pod: the class and its number there, or its name if a controller
// made it. It is small on purpose: there is one for each pod of the pool.
type member struct {
	class int32
	n     uint64
	name  string
}

// podName is the pod's name.
func (m *member) podName(c *class) string {
	if m.name != "" {
		return m.name
	}
	return c.Class.podName(m.n)
}

// newGenerator divides total pods among the classes. Shares are rounded against
// the sum so far: the classes together make exactly total.
func newGenerator(r *driver, w *Workload, total int) *generator {
	g := &generator{r: r, w: w, byName: map[string]*Class{}}
	shares := 0.0
	for i := range w.Spec.Classes {
		shares += w.Spec.Classes[i].Share
	}
	given, sum := 0, 0.0
	for i := range w.Spec.Classes {
		c := &class{Class: &w.Spec.Classes[i], index: int32(i), templates: map[amounts]*apiserver.Template{}}
		if c.want = c.Count; c.Controller == kindDaemonSet {
			c.want = 0
		}
		if c.Share > 0 { // what is left over by rounding is given on
			sum += c.Share
			upTo := int(float64(total)*sum/shares + 0.5)
			c.want = upTo - given
			given = upTo
		}
		g.wanted += c.want
		g.classes = append(g.classes, c)
		g.byName[c.namespace()+"/"+c.Name] = c.Class
		g.controllers = g.controllers || c.Controller != ""
	}
	return g
}

// prepare makes the namespaces and checks that the API takes the pods. A pod that
// the API refuses shows here, before hours of a run.
func (g *generator) prepare() error {
	g.watch()
	needs := newNeeds(g.r)
	for _, c := range g.classes {
		if err := g.r.namespace(c.namespace()); err != nil {
			return err
		}
		t, err := g.template(c, c.amounts(g.r.cfg.Seed, 0))
		if err != nil {
			return err
		}
		needs.configs(t.Pod())
		for _, what := range noeffect.Unsupported(t.Pod()) {
			g.r.warn(fmt.Sprintf("class %s: pod.%s", c.Name, what))
		}
	}
	return nil
}

// begin creates the pods wanted at first. With a rate they come one after the
// other, else all at one instant.
func (g *generator) begin() {
	for _, n := range g.r.cluster.Nodes() {
		g.nodes = append(g.nodes, n.Name())
	}
	g.daemons()
	rate := g.r.cfg.CreateRate
	if rate == 0 {
		g.create(g.wanted)
		return
	}
	every := max(time.Duration(float64(time.Second)/rate), 5*time.Millisecond)
	began := g.r.now()
	var tick func()
	tick = func() {
		due := int(rate*(g.r.now()-began).Seconds()) + 1
		g.create(min(due, g.wanted))
		if g.made < g.wanted {
			g.r.after(every, tick)
		}
	}
	tick()
}

// create brings the number of pods made at first up to n, each of the class that
// is furthest behind its part.
func (g *generator) create(n int) {
	for g.made < n {
		var behind *class
		most := 0.0
		for _, c := range g.classes {
			if lack := float64(c.want)*float64(g.made+1)/float64(g.wanted) - float64(c.made); c.made < c.want && (behind == nil || lack > most) {
				behind, most = c, lack
			}
		}
		if behind.Controller != "" {
			pods := g.object(behind, behind.want-behind.made)
			behind.made += pods
			g.made += pods
			continue
		}
		behind.made++
		node := ""
		if g.r.cfg.Bound {
			node = g.nodes[g.made%len(g.nodes)]
		}
		g.stamp(behind, node, true)
		g.made++
	}
}

// steady begins what goes on once start-up is over. Arrivals and replacements are
// Poisson processes: each draws the time to its next event.
func (g *generator) steady() {
	if g.r.cfg.Churn > 0 && (len(g.pool) > 0 || g.controllers) {
		g.r.after(g.interval("scale/churn", "", g.r.cfg.Churn, &g.churn), g.replaceOne)
	}
	for _, c := range g.classes {
		if c.ArrivalRate > 0 {
			g.arrive(c)
		}
	}
}

// interval draws the time to the next of independent events.
func (g *generator) interval(purpose, object string, rate float64, n *uint64) time.Duration {
	*n++
	d := Distribution[float64]{Exponential: &Exponential[float64]{Mean: 1 / rate}}
	return seconds(d.quantile(draw(g.r.cfg.Seed, purpose, object, *n)))
}

// arrive waits for a class's next arrival, and for the one after that.
func (g *generator) arrive(c *class) {
	g.r.after(g.interval("scale/arrival", c.Name, c.ArrivalRate, &c.arrivals), func() {
		if c.Controller != "" {
			g.object(c, math.MaxInt)
		} else {
			g.stamp(c, "", false)
		}
		g.arrive(c)
	})
}

// replaceOne deletes a pod drawn from the pool and makes another of its class.
// One that has gone by itself is dropped, and another drawn. Controllers replace
// theirs themselves.
func (g *generator) replaceOne() {
	cfg := &g.r.cfg
	for len(g.pool) > 0 {
		i := int(draw(cfg.Seed, "scale/churn-pod", "", g.churn) * float64(len(g.pool)))
		m := g.pool[i]
		g.pool[i] = g.pool[len(g.pool)-1]
		g.pool = g.pool[:len(g.pool)-1]
		c := g.classes[m.class]
		pod := g.r.cluster.API().Pod(c.namespace(), m.podName(c))
		if pod == nil || pod.DeletionTimestamp != nil {
			g.churn++
			continue
		}
		if m.name != "" { // its controller makes another
			g.r.delete(c.namespace(), m.name)
		} else {
			g.end(c, m.n, true)
		}
		break
	}
	if len(g.pool) > 0 || g.controllers {
		g.r.after(g.interval("scale/churn", "", cfg.Churn, &g.churn), g.replaceOne)
	}
}

// end deletes a pod and, if it is to be replaced, makes another, on the same
// node if pods are bound.
func (g *generator) end(c *class, n uint64, replace bool) {
	node := ""
	if pod := g.r.cluster.API().Pod(c.namespace(), c.podName(n)); pod != nil && g.r.cfg.Bound {
		node = pod.Spec.NodeName
	}
	g.r.delete(c.namespace(), c.podName(n))
	if replace {
		g.stamp(c, node, true)
	}
}

// podName is the n-th pod's name.
func (c *Class) podName(n uint64) string { return c.Name + "-" + strconv.FormatUint(n, 10) }

// stamp creates a class's next pod. One that stays is replaced when its lifetime
// is over. node is where it is bound from the start; "" leaves that to the
// scheduler.
func (g *generator) stamp(c *class, node string, stays bool) {
	n := c.next
	c.next++
	t, err := g.template(c, c.amounts(g.r.cfg.Seed, n))
	if err == nil {
		_, err = g.r.cluster.API().CreateFromTemplate(t, apiserver.Stamp{Name: c.podName(n), NodeName: node})
	}
	if err != nil {
		g.r.failed(c.namespace(), c.podName(n), err)
		return
	}
	g.r.result.Created++
	if g.r.cfg.Churn > 0 && stays && c.churns() {
		g.join(member{class: c.index, n: n})
	}
	if c.Lifetime != nil && c.End != endExit {
		g.r.after(c.lifetime(g.r.cfg.Seed, n), func() {
			if p := g.r.cluster.API().Pod(c.namespace(), c.podName(n)); p != nil && p.DeletionTimestamp == nil {
				g.end(c, n, stays)
			}
		})
	}
}

// churns reports whether churn takes the class's pods: those without an end of their
// own.
func (c *Class) churns() bool { return c.Lifetime == nil && c.Controller != kindDaemonSet }

// join puts a pod into the pool. Pods that ended by themselves leave it when there
// are many.
func (g *generator) join(m member) {
	const few = 1024
	if len(g.pool) >= max(g.most, 2*g.wanted, few) {
		g.pool = slices.DeleteFunc(g.pool, func(m member) bool {
			c := g.classes[m.class]
			return g.r.cluster.API().Pod(c.namespace(), m.podName(c)) == nil
		})
		g.most = 2 * len(g.pool)
	}
	g.pool = append(g.pool, m)
}

// lifetime draws how long the n-th pod lives.
func (c *Class) lifetime(seed, n uint64) time.Duration {
	return max(seconds(c.Lifetime.quantile(draw(seed, "scale/lifetime", c.Name, n))), time.Millisecond)
}

// template returns the pod of a class that has these requests.
func (g *generator) template(c *class, a amounts) (*apiserver.Template, error) {
	if t := c.templates[a]; t != nil {
		return t, nil
	}
	t, err := g.r.cluster.API().NewTemplate(c.pod(a))
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", c.Name, err)
	}
	if len(c.templates) == maxTemplates {
		clear(c.templates)
	}
	c.templates[a] = t
	return t, nil
}

// behave says what a generated pod's first container does; nil for others. It
// is called on the nodes' loops.
func (g *generator) behave(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	c := g.byName[pod.Metadata.Namespace+"/"+pod.Labels[LabelClass]]
	if c == nil || c.Usage.CPU == nil && c.Usage.Memory == nil && c.End != endExit {
		return nil
	}
	number, ok := pod.Labels[LabelObject]
	if !ok {
		number, ok = strings.CutPrefix(pod.Metadata.Name, c.Name+"-")
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || container.Metadata.Name != c.firstContainer() {
		return nil
	}
	seed := g.r.cfg.Seed
	a := c.amounts(seed, n)
	if c.Controller != "" { // requests are the object's, the rest is the pod's
		n = loop.Hash(seed, []string{"scale/pod", pod.Metadata.Name})
	}
	b := &fakecri.Behaviour{}
	if d := c.Usage.CPU; d != nil {
		b.CPU = usage.Constant(int64(d.quantile(draw(seed, "scale/cpu-usage", c.Name, n)) * float64(a.cpu)))
	}
	if d := c.Usage.Memory; d != nil {
		b.Memory = usage.Constant(int64(d.quantile(draw(seed, "scale/memory-usage", c.Name, n)) * float64(a.memory)))
	}
	if c.End == endExit {
		b.RunFor = fakecri.Exactly(c.lifetime(seed, n))
		if draw(seed, "scale/failing", c.Name, n+uint64(container.Metadata.Attempt)<<48) < c.Failing {
			b.ExitCode = 1
		}
	}
	return b
}

// firstContainer is the one that usage is of.
func (c *Class) firstContainer() string {
	if c.Pod == nil || len(c.Pod.Spec.Containers) == 0 {
		return "app"
	}
	return c.Pod.Spec.Containers[0].Name
}

// namespace makes a namespace, if it is not there.
func (r *driver) namespace(name string) error {
	if _, err := r.cluster.API().Get(apiserver.KindNamespace, "", name); err == nil {
		return nil
	}
	if _, err := r.cluster.API().Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// delete deletes a pod with its own grace period.
func (r *driver) delete(namespace, name string) {
	if err := r.cluster.API().Delete(apiserver.KindPod, namespace, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		r.failed(namespace, name, err)
	}
}
