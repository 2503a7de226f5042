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
// wanted count pods of the start; what churn and arrivals add is not in them. What churn and
// arrivals draw is counted (churn, arrivals), so that each draw has a number of its own.
type generator struct {
	r       *driver
	w       *Workload
	classes []*class
	// byName: by namespace/name; only read once the run began.
	byName map[string]*Class
	wanted int
	made   int
	nodes  []string // for bound pods
	// pool has the pods that churn picks from; some may be gone. It is allowed to hold pods that
	// are gone: removing each as it ends would need a hook for every deletion, while a stale one
	// costs one look when it is drawn.
	pool []member
	// most: of the pool, before those that are gone are dropped.
	most  int
	churn uint64 // draws
	// controllers tells that some pods are made by controllers.
	controllers bool
}

// class is a class with what it has come to. Numbers go on from the first pods to
// those that arrive later, so no name comes twice. Numbers are what draws are made of: the n-th
// pod of a class requests and lives the same in every run of the seed, whenever it is created.
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
// may be spread over orders of magnitude. A template that was dropped is made again; pods then
// share a spec with fewer others.
const maxTemplates = 4096

// member is one pod: the class and its number there, or its name if a controller
// made it. It is small on purpose: there is one for each pod of the pool. A name is needed only
// where the number does not give it.
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
// the sum so far: the classes together make exactly total. Rounding each share alone could make
// some pods more or fewer than total, and a run of "30 pods each" would not have them.
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
// the API refuses shows here, before hours of a run. Needs are the objects that the class's pod
// names, such as ConfigMaps: without them its pods would wait for ever.
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
// other, else all at one instant. Ticks are at least 5 ms apart; at high rates each creates
// several, by the time that has passed rather than by counting ticks. So the rate is kept
// exactly.
func (g *generator) begin() {
	// Nodes are in the order in which they were added; bound pods go round over them.
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
// is furthest behind its part. The classes are mixed evenly: a run that made one class after the
// other would fill nodes with like pods and have the scheduler see a cluster that nobody has.
func (g *generator) create(n int) {
	for g.made < n {
		// behind never stays nil: made < wanted means that some class wants more. Of equal ones
		// the first in the document is taken.
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
		// Round robin, as the pods are equal enough.
		if g.r.cfg.Bound {
			node = g.nodes[g.made%len(g.nodes)]
		}
		g.stamp(behind, node, true)
		g.made++
	}
}

// steady begins what goes on once start-up is over. Arrivals and replacements are
// Poisson processes: each draws the time to its next event. Without pods to replace there is no
// churn, and no timer for it: one that fires for nothing would be in the hash.
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

// interval draws the time to the next of independent events. Exponential times between events are
// what makes them a Poisson process: memoryless and independent.
func (g *generator) interval(purpose, object string, rate float64, n *uint64) time.Duration {
	*n++
	d := Distribution[float64]{Exponential: &Exponential[float64]{Mean: 1 / rate}}
	return seconds(d.quantile(draw(g.r.cfg.Seed, purpose, object, *n)))
}

// arrive waits for a class's next arrival, and for the one after that. The next arrival is drawn
// when one happens; thousands of timers ahead would be no better.
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
// theirs themselves. A removed member is replaced by the last one, so that drawing and removing
// cost the same however large the pool. The pool's order depends only on the order of creations
// and draws.
func (g *generator) replaceOne() {
	cfg := &g.r.cfg
	for len(g.pool) > 0 {
		i := int(draw(cfg.Seed, "scale/churn-pod", "", g.churn) * float64(len(g.pool)))
		m := g.pool[i]
		g.pool[i] = g.pool[len(g.pool)-1]
		g.pool = g.pool[:len(g.pool)-1]
		c := g.classes[m.class]
		pod := g.r.cluster.API().Pod(c.namespace(), m.podName(c))
		// The draw counter goes on, so the next look draws another.
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
// node if pods are bound. The replacement is created at once, as a controller would on seeing the
// deletion; it takes another number, and so has another name than the pod that is still
// terminating.
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
// scheduler. CreateFromTemplate is the path on which a pod shares its spec with all pods of the
// template: nothing is copied, defaulted or validated again.
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
	// A pod that arrived is not in the pool: it comes and goes by its own distributions.
	if g.r.cfg.Churn > 0 && stays && c.churns() {
		g.join(member{class: c.index, n: n})
	}
	if c.Lifetime != nil && c.End != endExit {
		// The pod may be gone by then, by an eviction, say: then nobody replaces it
		// (Class.Controller).
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
// are many. The cleaning is amortized: it happens when the pool has doubled since.
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

// lifetime draws how long the n-th pod lives. At least a millisecond, so that it is an event
// after the creation.
func (c *Class) lifetime(seed, n uint64) time.Duration {
	return max(seconds(c.Lifetime.quantile(draw(seed, "scale/lifetime", c.Name, n))), time.Millisecond)
}

// template returns the pod of a class that has these requests. The key is the rounded amounts;
// everything else of a class's pods is the same.
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
// is called on the nodes' loops. It is asked when a container is created. It is a function of the
// pod's name, the labels and the attempt: nodes call it at once from several goroutines, in no
// order.
func (g *generator) behave(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	c := g.byName[pod.Metadata.Namespace+"/"+pod.Labels[LabelClass]]
	if c == nil || c.Usage.CPU == nil && c.Usage.Memory == nil && c.End != endExit {
		return nil
	}
	number, ok := pod.Labels[LabelObject]
	if !ok {
		// A pod of a controller has its object's number as a label; one of the generator's has it
		// in its name.
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
		// The attempt is in the draw, in bits that pod numbers don't reach, so a container that
		// failed may succeed when it is restarted.
		if draw(seed, "scale/failing", c.Name, n+uint64(container.Metadata.Attempt)<<48) < c.Failing {
			b.ExitCode = 1
		}
	}
	return b
}

// firstContainer is the one that usage is of. It is "app" where the class says nothing of its
// pod, as pod() has it.
func (c *Class) firstContainer() string {
	if c.Pod == nil || len(c.Pod.Spec.Containers) == 0 {
		return "app"
	}
	return c.Pod.Spec.Containers[0].Name
}

// namespace makes a namespace, if it is not there. Feeds of one run may share namespaces, and
// some are there from the beginning.
func (r *driver) namespace(name string) error {
	if _, err := r.cluster.API().Get(apiserver.KindNamespace, "", name); err == nil {
		return nil
	}
	if _, err := r.cluster.API().Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// delete deletes a pod with its own grace period. A pod that is gone already is no error:
// eviction and lifetime may come together.
func (r *driver) delete(namespace, name string) {
	if err := r.cluster.API().Delete(apiserver.KindPod, namespace, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		r.failed(namespace, name, err)
	}
}
