package scheduler

import (
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

const maxNodeScore = 100

// Bounds of the images' sizes that count (plugins/imagelocality).
const (
	imageMin          = 23 << 20
	imageContainerMax = 1000 << 20
)

// entry is what a class remembers of a node.
type entry struct {
	why verdict
	// gen: nodeInfo.gen that the rest is of; 0: none.
	gen uint32
	// Scheduler.imageGen that images is of.
	imageGen  uint32
	preferred int32 // NodeAffinity's raw score
	taints    int16 // TaintToleration's
	images    int16
	// fit and balanced are NodeResourcesFit's and NodeResourcesBalancedAllocation's scores, up to 100.
	fit, balanced int8
}

// entry returns what the class knows of a node, brought up to date.
func (cy *cycle) entry(n *nodeInfo) *entry {
	e := &cy.scratch
	if n.slot < len(cy.c.entries) {
		e = &cy.c.entries[n.slot]
		if e.gen == n.gen {
			return e
		}
	}
	*e = entry{gen: n.gen, why: filterNode(cy.c, n), imageGen: cy.s.table.imageGen - 1}
	if e.why == 0 {
		p := cy.c.profile
		e.fit, e.balanced = int8(p.fit.score(cy.c, n, nil)), int8(p.balancedScore(&cy.c.request, n, nil))
		e.taints = int16(intolerable(n.node.Spec.Taints, cy.c.prefer))
		if cy.c.preferred != nil {
			e.preferred = int32(cy.c.preferred.Score(n.node))
		}
		if p.preferred != nil {
			e.preferred += int32(p.preferred.Score(n.node))
		}
	}
	return e
}

// preferTolerations returns the tolerations that TaintToleration's score is of.
func preferTolerations(list []v1.Toleration) []v1.Toleration {
	return lists.Filter(list, func(t v1.Toleration) bool {
		return t.Effect == "" || t.Effect == v1.TaintEffectPreferNoSchedule
	})
}

// intolerable counts the PreferNoSchedule taints that are not tolerated.
func intolerable(taints []v1.Taint, prefer []v1.Toleration) int {
	k := 0
	for i := range taints {
		if taints[i].Effect == v1.TaintEffectPreferNoSchedule && !tolerates(prefer, &taints[i]) {
			k++
		}
	}
	return k
}

// imagePart is what one image of the pod counts for on the nodes that have it.
type imagePart struct {
	state *imageState
	size  int64
}

// setImages finds the pod's images that could count; none when they are too small
// together.
func (cy *cycle) setImages() {
	if cy.c.profile.weights.images == 0 {
		return
	}
	var all int64
	for _, name := range cy.c.images {
		if st := cy.s.table.images[name]; st != nil && st.nodes > 0 {
			size := int64(float64(st.size) * (float64(st.nodes) / float64(cy.s.table.tree.size)))
			cy.images = append(cy.images, imagePart{st, size})
			all += size
		}
	}
	if all <= imageMin {
		cy.images = cy.images[:0]
	}
}

// imageLocality is ImageLocality.Score.
func (cy *cycle) imageLocality(n *nodeInfo, e *entry) int64 {
	if len(cy.images) == 0 {
		return 0
	}
	if e.imageGen == cy.s.table.imageGen {
		return int64(e.images)
	}
	var size int64
	for _, im := range cy.images {
		if n.images[im.state] {
			size += im.size
		}
	}
	most := int64(imageContainerMax) * int64(cy.c.containers)
	size = min(max(size, imageMin), most)
	e.imageGen, e.images = cy.s.table.imageGen, int16(maxNodeScore*(size-imageMin)/(most-imageMin))
	return int64(e.images)
}

// score fills cy.totals for the feasible nodes: the plugins' scores, normalised
// and weighted. Plugins whose scores are normalised over the feasible nodes need
// two passes; those that look at the node alone come from the class's memory.
func (cy *cycle) score(feasible []*nodeInfo) []int64 {
	totals := growTo(&cy.s.totalScratch, len(feasible))
	raw := growTo(&cy.s.rawScratch, len(feasible))
	cy.setImages()
	var mostTaints, mostPreferred int64
	w := &cy.c.profile.weights
	devices := cy.c.profile.scoresAny(cy.s.devices.mapping)
	for i, n := range feasible {
		e := cy.entry(n)
		fit, balanced := int64(e.fit), int64(e.balanced)
		if devices { // which are not the node's alone: not remembered
			of := func(name v1.ResourceName) (int64, int64) { return cy.s.devices.totals(n.node, name) }
			fit, balanced = cy.c.profile.fit.score(cy.c, n, of), cy.c.profile.balancedScore(&cy.c.request, n, of)
		}
		totals[i] = w.fit*fit + w.balanced*balanced + w.images*cy.imageLocality(n, e)
		raw[i] = rawScores{taints: int64(e.taints), preferred: int64(e.preferred)}
		mostTaints, mostPreferred = max(mostTaints, raw[i].taints), max(mostPreferred, raw[i].preferred)
	}
	for i := range totals {
		// Fewer intolerable taints are better, so this plugin's normalised score
		// is reversed.
		tolerable := int64(maxNodeScore)
		if mostTaints > 0 {
			tolerable -= maxNodeScore * raw[i].taints / mostTaints
		}
		totals[i] += w.taints * tolerable
		if mostPreferred > 0 {
			totals[i] += w.nodeAffinity * (maxNodeScore * raw[i].preferred / mostPreferred)
		}
	}
	if w.spread != 0 && cy.scoreSpread(feasible) {
		for i := range totals {
			totals[i] += w.spread * cy.spreadScores[i]
		}
	}
	if len(cy.affinity.scores) > 0 {
		cy.addAffinityScores(feasible, totals)
	}
	return totals
}

// rawScores are those that are normalised by the greatest of them.
type rawScores struct{ taints, preferred int64 }

// addAffinityScores normalises InterPodAffinity's scores between their least and
// their most.
func (cy *cycle) addAffinityScores(feasible []*nodeInfo, totals []int64) {
	scores := make([]int64, len(feasible))
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for i, n := range feasible {
		scores[i] = cy.scoreAffinity(n)
		low, high = min(low, scores[i]), max(high, scores[i])
	}
	// All are equal: the plugin says nothing, as upstream's.
	if high <= low {
		return
	}
	for i := range totals {
		totals[i] += cy.c.profile.weights.podAffinity * int64(maxNodeScore*(float64(scores[i]-low)/float64(high-low)))
	}
}
