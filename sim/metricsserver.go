package sim

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
)

// metrics-server's --metric-resolution in its manifests, and the age from which a
// container that started since the last scrape has metrics
// (kubernetes-sigs/metrics-server pkg/storage/pod.go).
const (
	metricResolution   = 15 * time.Second
	freshContainerAge  = 10 * time.Second
	metricsStaleFactor = 2
)

// metricsServer is metrics-server: it asks the kubelets every 15 s what the
// containers use and keeps the last two answers. It asks only while somebody wants
// to know, and only for the pods that they want to know of. It runs on the API's
// loop; a kubelet that is down or a machine that is off does not answer.
type metricsServer struct {
	c       *Cluster
	l       *loop.Loop
	targets []*metricsTarget
	points  map[types.UID]*podPoints
	timer   *loop.Timer
	scrapes uint64
}

type metricsTarget struct {
	namespace string
	match     func(*v1.Pod) bool
}

// podPoints are a pod's last two answers.
type podPoints struct {
	prev, last podPoint
	scrape     uint64 // the last that asked for it
}

type podPoint struct {
	at         time.Time
	containers []fakecri.ContainerUsage
}

func newMetricsServer(c *Cluster, l *loop.Loop) *metricsServer {
	m := &metricsServer{c: c, l: l, points: map[types.UID]*podPoints{}}
	m.timer = l.Root().NewTimer("metrics scrape", m.scrape)
	return m
}

// Watch implements podautoscaler.Metrics. The first scrape is at once, the others
// are at multiples of 15 s since the start of the run.
func (m *metricsServer) Watch(namespace string, match func(*v1.Pod) bool) (stop func()) {
	t := &metricsTarget{namespace, match}
	m.targets = append(m.targets, t)
	m.scrape()
	return func() {
		m.targets = slices.DeleteFunc(m.targets, func(o *metricsTarget) bool { return o == t })
		if len(m.targets) == 0 {
			m.timer.Stop()
			clear(m.points)
		}
	}
}

// scrape asks every node that has pods of interest for them.
func (m *metricsServer) scrape() {
	m.timer.Reset(metricResolution - m.l.Since(m.c.start)%metricResolution)
	m.scrapes++
	var nodes []string // in the order of their first pod
	asked := map[string][]types.UID{}
	for _, t := range m.targets {
		for _, pod := range m.c.Store().PodsInNamespace(t.namespace) {
			name := pod.Spec.NodeName
			if name == "" || !t.match(pod) {
				continue
			}
			p := m.points[pod.UID]
			if p == nil {
				p = &podPoints{}
				m.points[pod.UID] = p
			}
			if p.scrape == m.scrapes {
				continue // of another target too
			}
			p.scrape = m.scrapes
			if asked[name] == nil {
				nodes = append(nodes, name)
			}
			asked[name] = append(asked[name], pod.UID)
		}
	}
	for uid, p := range m.points { //drydock:unordered deletes what was not asked for
		if p.scrape != m.scrapes {
			delete(m.points, uid)
		}
	}
	for _, name := range nodes {
		if n := m.c.byName[name]; n != nil && n.rt != nil {
			m.ask(n, asked[name])
		}
	}
}

// ask sends a node the question and has its answer kept.
func (m *metricsServer) ask(n *Node, uids []types.UID) {
	k := m.scrapes
	there := m.l.Between(m.c.opts.APILatencyMin, m.c.opts.APILatencyMax, "metrics/request", n.name, k)
	m.l.Send(n.l, there, loop.Hash(0, []string{"metrics", n.name}), func() {
		if n.off || n.group == nil || n.identity != nil && !n.identity.Serves() {
			return
		}
		at := n.l.Now()
		answer := make([][]fakecri.ContainerUsage, len(uids))
		for i, uid := range uids {
			answer[i] = n.rt.ContainerUsages(string(uid))
		}
		back := n.l.Between(m.c.opts.APILatencyMin, m.c.opts.APILatencyMax, "metrics/reply", n.name, k)
		n.l.Send(m.l, back, loop.Hash(0, []string{"metrics", n.name}), func() {
			for i, uid := range uids {
				if p := m.points[uid]; p != nil {
					p.prev, p.last = p.last, podPoint{at, answer[i]}
				}
			}
		})
	})
}

// milliCores is a mean in millicores: of whole nanocores, rounded up as a Quantity's
// MilliValue is.
func milliCores(coreNanos int64, window time.Duration) int64 {
	nano := int64(float64(coreNanos) / max(window.Seconds(), 1e-9))
	return (nano + 999_999) / 1_000_000
}

// PodMetrics implements podautoscaler.Metrics. A pod has metrics when each of its
// running containers was there at two scrapes, or has been for 10 s.
func (m *metricsServer) PodMetrics(pod *v1.Pod) (podautoscaler.PodMetrics, bool) {
	p := m.points[pod.UID]
	if p == nil || len(p.last.containers) == 0 || m.l.Since(p.last.at) > metricsStaleFactor*metricResolution {
		return podautoscaler.PodMetrics{}, false
	}
	out := podautoscaler.PodMetrics{Timestamp: p.last.at}
	for i := range p.last.containers {
		c := &p.last.containers[i]
		since, used := c.Started, int64(0)
		j := slices.IndexFunc(p.prev.containers, func(o fakecri.ContainerUsage) bool {
			return o.Name == c.Name && o.Started.Equal(c.Started)
		})
		switch {
		case j >= 0:
			since, used = p.prev.at, p.prev.containers[j].CoreNanos
		case p.last.at.Sub(c.Started) < freshContainerAge || p.last.at.Sub(c.Started) > metricResolution:
			return podautoscaler.PodMetrics{}, false
		}
		window := p.last.at.Sub(since)
		out.Window = max(out.Window, window)
		out.Containers = append(out.Containers, podautoscaler.ContainerMetrics{
			Name: c.Name, MilliCPU: milliCores(c.CoreNanos-used, window), Memory: c.Memory,
		})
	}
	return out, true
}
