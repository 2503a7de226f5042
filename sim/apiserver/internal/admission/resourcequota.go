package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/quota"
)

// admitQuota is the plugin ResourceQuota (k8s.io/apiserver,
// pkg/admission/plugin/resourcequota): what is made is charged to the quotas of its
// namespace, and refused if it is more than is left of one. A quota of which nobody has
// counted the use yet (its status says no hard limits) limits nothing.
func (p *Plugins) admitQuota(r *Request) error {
	of := quota.Of(r.Kind)
	if r.Namespace == "" || !charged(r, of) {
		return nil
	}
	var quotas []*v1.ResourceQuota
	p.cluster.Each(kinds.ResourceQuota, func(o kind.Object) bool {
		if q := o.(*v1.ResourceQuota); q.Namespace == r.Namespace && of.Matches(q, r.Object) {
			quotas = append(quotas, q)
		}
		return true
	})
	if len(quotas) == 0 {
		return nil
	}
	for _, q := range quotas {
		names := of.Resources(fields.SortedKeys(q.Status.Hard))
		if missing := of.Missing(names, r.Object); missing != "" {
			return r.forbidden(fmt.Sprintf("failed quota: %s: must specify %s", q.Name, missing))
		}
		if slices.ContainsFunc(names, func(n v1.ResourceName) bool { _, ok := q.Status.Used[n]; return !ok }) {
			slices.Sort(names)
			return r.forbidden(fmt.Sprintf("status unknown for quota: %s, resources: %s", q.Name, joinNames(names)))
		}
	}
	usage := of.Usage(r.Object, r.Now)
	var next []*v1.ResourceQuota
	for _, q := range quotas {
		delta := usage
		if r.Old != nil && of.Matches(q, r.Old) {
			delta = quota.Less(usage, of.Usage(r.Old, r.Now))
		}
		charged, err := charge(r, q, delta)
		if err != nil {
			return err
		}
		if charged != nil {
			next = append(next, charged)
		}
	}
	if !r.DryRun {
		for _, q := range next {
			p.cluster.SetQuotaStatus(q)
		}
	}
	return nil
}

// charge returns a quota with more used; nil: nothing of it is.
func charge(r *Request, q *v1.ResourceQuota, delta v1.ResourceList) (*v1.ResourceQuota, error) {
	used, requested, over := v1.ResourceList{}, v1.ResourceList{}, []v1.ResourceName{}
	for _, name := range fields.SortedKeys(q.Status.Used) {
		used[name] = q.Status.Used[name]
	}
	for _, name := range fields.SortedKeys(delta) {
		hard, limited := q.Status.Hard[name]
		more := delta[name]
		if !limited || more.IsZero() {
			continue
		}
		requested[name] = more
		sum := used[name].DeepCopy()
		sum.Add(more)
		used[name] = sum
		if sum.Cmp(hard) > 0 {
			over = append(over, name)
		}
	}
	if len(requested) == 0 {
		return nil, nil
	}
	if len(over) > 0 && r.Subresource != "status" {
		return nil, r.forbidden(fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
			q.Name, amounts(requested, over), amounts(q.Status.Used, over), amounts(q.Status.Hard, over)))
	}
	c := *q
	c.Status.Used = used
	return &c, nil
}

// charged reports whether a request may change what is used.
func charged(r *Request, of quota.Evaluator) bool {
	if r.Operation == admissionv1.Create {
		return r.Subresource == ""
	}
	return of.Updates(r.Object, r.Old, r.Subresource)
}

// amounts writes some amounts of a list: "cpu=1,pods=2".
func amounts(list v1.ResourceList, names []v1.ResourceName) string {
	var out []string
	for _, name := range names {
		q := list[name]
		out = append(out, fmt.Sprintf("%s=%s", name, &q))
	}
	return strings.Join(out, ",")
}

func joinNames(names []v1.ResourceName) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, ",")
}
