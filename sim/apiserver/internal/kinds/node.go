package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Node is the kind of nodes. A kubelet registers its own with a status, and watches
// it.
const Node kind.Kind = "Node"

// node returns the row of Node (pkg/registry/core/node/strategy.go). Nodes have no
// generation: upstream's neither.
func node() *kind.Info {
	return &kind.Info{
		Kind: Node, Version: "v1", Resource: "nodes", ShortNames: []string{"no"}, Meta: kind.MetaAgain, Watch: kind.ByNode,
		Strategy: &kind.Typed[v1.Node, *v1.Node]{
			Defaults: setNodeDefaults,
			Halves:   kind.SpecAndStatus(func(n *v1.Node) (*v1.NodeSpec, *v1.NodeStatus) { return &n.Spec, &n.Status }),
			Reset: func(n *v1.Node) { // a kubelet registers its node with a status
				n.Spec.ConfigSource, n.Status.Config = nil, nil // of a feature that was removed
				for i := range n.Status.Conditions {
					n.Status.Conditions[i] = asjson.NodeCondition(n.Status.Conditions[i])
				}
			},
			Check:       validateNode,
			CheckUpdate: validateNodeUpdate,
			Fields: func(n *v1.Node) selectable.Set {
				return selectable.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
			},
			Node:  func(n *v1.Node) string { return n.Name },
			Entry: nodeEntry,
			Warn:  nodeWarnings,
			Table: nodeTable(),
		},
	}
}

// setNodeDefaults is SetDefaults_NodeStatus with what conversion makes of the older field
// for a node's addresses of pods.
func setNodeDefaults(n *v1.Node) {
	// What no kubelet has reserved anything of is allocatable as a whole.
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	s := &n.Spec
	if s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR) {
		s.PodCIDRs = []string{s.PodCIDR}
	}
	if len(s.PodCIDRs) > 0 {
		s.PodCIDR = s.PodCIDRs[0]
	}
}

// nodeTable are the columns of kubectl get nodes (printNode).
func nodeTable() []kind.Column[v1.Node] {
	meta, status, info := metav1.ObjectMeta{}.SwaggerDoc(), v1.NodeStatus{}.SwaggerDoc(), v1.NodeSystemInfo{}.SwaggerDoc()
	col := func(name, doc string, priority int32, cell func(n *v1.Node) string) kind.Column[v1.Node] {
		return kind.Column[v1.Node]{Name: name, Type: "string", Description: doc, Priority: priority, Cell: func(n *v1.Node, _ time.Time) any { return cell(n) }}
	}
	age := kind.AgeColumn[v1.Node]()
	age.Description = meta["creationTimestamp"]
	address := func(t v1.NodeAddressType) func(n *v1.Node) string {
		return func(n *v1.Node) string {
			i := slices.IndexFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return a.Type == t })
			if i < 0 {
				return noneCell
			}
			return n.Status.Addresses[i].Address
		}
	}
	return []kind.Column[v1.Node]{
		kind.NameColumn[v1.Node](),
		col("Status", "The status of the node", 0, nodeState),
		col("Roles", "The roles of the node", 0, nodeRoles),
		age,
		col("Version", info["kubeletVersion"], 0, func(n *v1.Node) string { return n.Status.NodeInfo.KubeletVersion }),
		col("Internal-IP", status["addresses"], 1, address(v1.NodeInternalIP)),
		col("External-IP", status["addresses"], 1, address(v1.NodeExternalIP)),
		col("OS-Image", info["osImage"], 1, func(n *v1.Node) string { return cmp.Or(n.Status.NodeInfo.OSImage, "<unknown>") }),
		col("Kernel-Version", info["kernelVersion"], 1, func(n *v1.Node) string {
			text := cmp.Or(n.Status.NodeInfo.KernelVersion, "<unknown>")
			if arch := n.Status.NodeInfo.Architecture; arch != "" {
				text += " (" + arch + ")"
			}
			return text
		}),
		col("Container-Runtime", info["containerRuntimeVersion"], 1, func(n *v1.Node) string {
			return cmp.Or(n.Status.NodeInfo.ContainerRuntimeVersion, "<unknown>")
		}),
	}
}

// nodeState says whether a node is ready and takes pods.
func nodeState(n *v1.Node) string {
	text := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			text = "NotReady"
			if c.Status == v1.ConditionTrue {
				text = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		text += ",SchedulingDisabled"
	}
	return text
}

// nodeRoles are those that a node's labels name (findNodeRoles).
func nodeRoles(n *v1.Node) string {
	var roles []string
	for _, k := range fields.SortedKeys(n.Labels) {
		role, ok := strings.CutPrefix(k, "node-role.kubernetes.io/")
		if k == "kubernetes.io/role" {
			role, ok = n.Labels[k], true
		}
		if ok && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return cmp.Or(strings.Join(slices.Compact(roles), ","), noneCell)
}

// nodeWarnings is that of pkg/registry/core/node/strategy.go.
func nodeWarnings(n, _ *v1.Node, sub string) []string {
	if sub != "" {
		return nil
	}
	var out []string
	if n.Spec.ConfigSource != nil {
		out = append(out, "spec.configSource: the feature is removed")
	}
	if n.Spec.DoNotUseExternalID != "" {
		out = append(out, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range n.Spec.PodCIDRs {
		out = append(out, validation.GetWarningsForCIDR(field.NewPath("spec", "podCIDRs").Index(i), cidr)...)
	}
	return out
}

// validateNode is ValidateNode.
func validateNode(n *v1.Node) field.ErrorList {
	errs := validateTaints(n.Spec.Taints)
	errs = append(errs, validateNodeAmounts(n)...)
	if swap := n.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil && *swap.Capacity <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), *swap.Capacity, "must be greater than zero"))
	}
	errs = append(errs, validateDeclaredFeatures(n.Status.DeclaredFeatures)...)
	return append(errs, validatePodCIDRs(n.Spec.PodCIDRs)...)
}

// validateTaints is validateNodeTaints, which blames metadata. A taint is known by key
// and effect together: the same key may both keep pods away and evict them.
func validateTaints(taints []v1.Taint) field.ErrorList {
	if len(taints) == 0 {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("metadata", "taints")
	for i, t := range taints {
		p := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, p.Child("key"))...)
		if texts := validation.IsValidLabelValue(t.Value); len(texts) > 0 {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, strings.Join(texts, ";")))
		}
		errs = append(errs, fields.OneOf(t.Effect, p.Child("effect"), v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		if slices.ContainsFunc(taints[:i], func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			err := field.Duplicate(p, fields.GoNames(t))
			err.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, err)
		}
	}
	return errs
}

// validateNodeAmounts is ValidateNodeResources.
func validateNodeAmounts(n *v1.Node) field.ErrorList {
	errs := podspec.ValidateAmounts(n.Status.Capacity, field.NewPath("status", "capacity"))
	return append(errs, podspec.ValidateAmounts(n.Status.Allocatable, field.NewPath("status", "allocatable"))...)
}

// validateDeclaredFeatures is validateNodeDeclaredFeatures: names of feature gates, in
// order.
func validateDeclaredFeatures(names []string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "declaredFeatures")
	for i, name := range names {
		p := path.Index(i)
		switch {
		case len(name) > validation.DNS1123SubdomainMaxLength:
			errs = append(errs, field.Invalid(p, name, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, validation.DNS1123SubdomainMaxLength)))
		case !featureName(name):
			errs = append(errs, field.Invalid(p, name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)))
		}
		if i == 0 {
			continue
		}
		if before := names[i-1]; name == before {
			errs = append(errs, field.Duplicate(p, name))
		} else if name < before {
			errs = append(errs, field.Invalid(p, name, "list must be sorted alphabetically"))
		}
	}
	return errs
}

// featureName reports whether a name consists of segments of letters and digits, each
// beginning with a letter, the first with an upper-case one.
func featureName(name string) bool {
	for i, seg := range strings.Split(name, "/") {
		for j, c := range []byte(seg) {
			upper, lower, digit := c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9'
			if !upper && !lower && !digit || j == 0 && (digit || i == 0 && !upper) {
				return false
			}
		}
		if seg == "" {
			return false
		}
	}
	return true
}

// validatePodCIDRs requires one range of addresses of pods for each family at most.
func validatePodCIDRs(cidrs []string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "podCIDRs")
	for i, c := range cidrs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), c, true, nil)...)
	}
	if len(cidrs) < 2 {
		return errs
	}
	both, err := netutils.IsDualStackCIDRStrings(cidrs)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%w", err)))
	}
	if !both || len(cidrs) > 2 {
		errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
	}
	return errs
}

// changedConditions appends the conditions that are new or whose status, reason or
// message changed, and why a node is not ready: the first that one looks for in a
// trace.
func changedConditions(out []trace.Field, old, now []v1.NodeCondition) []trace.Field {
	for i := range now {
		c := &now[i]
		same := false
		for j := range old {
			o := &old[j]
			same = same || o.Type == c.Type && o.Status == c.Status && o.Reason == c.Reason && o.Message == c.Message
		}
		if same {
			continue
		}
		text := string(c.Status)
		if c.Reason != "" {
			text += "/" + c.Reason
		}
		out = append(out, trace.Str(string(c.Type), text))
		// A node that is not ready says why.
		if c.Status != v1.ConditionTrue && c.Type == v1.NodeReady {
			out = append(out, trace.Str("message", c.Message))
		}
	}
	return out
}

// validateNodeUpdate is ValidateNodeUpdate. Who is given a machine's ID at the
// cloud, or addresses for pods, keeps them. The status alone is checked less; an update of
// the node checks once more what ValidateNode has.
func validateNodeUpdate(n, old *v1.Node, sub string) field.ErrorList {
	var errs field.ErrorList
	if sub == "" {
		errs = validateNode(n)
	}
	errs = append(errs, validateNodeAmounts(n)...)
	errs = append(errs, validateDeclaredFeatures(n.Status.DeclaredFeatures)...)
	for i, a := range n.Status.Addresses {
		if slices.Contains(n.Status.Addresses[:i], a) {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), fields.GoNames(a)))
		}
	}
	errs = append(errs, keptPodCIDRs(n.Spec.PodCIDRs, old.Spec.PodCIDRs)...)
	spec := field.NewPath("spec")
	if was := old.Spec.ProviderID; was != "" && n.Spec.ProviderID != was {
		errs = append(errs, field.Forbidden(spec.Child("providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	errs = append(errs, validateTaints(n.Spec.Taints)...)
	if n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(spec.Child("externalID"), "may not be updated"))
	}
	return errs
}

// keptPodCIDRs lets the addresses for pods be set once.
func keptPodCIDRs(now, was []string) field.ErrorList {
	var errs field.ErrorList
	err := field.Forbidden(field.NewPath("spec", "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid")
	if len(was) > 0 && len(now) != len(was) {
		return field.ErrorList{err}
	}
	for i := range was {
		if now[i] != was[i] {
			errs = append(errs, err)
		}
	}
	return errs
}

// nodeEntry shows the conditions that a write changed: who reads a trace looks for
// those of a node. A heartbeat changes none.
func nodeEntry(e *kind.Notes, c kind.Change, n *v1.Node) {
	if c.Type == watch.Deleted {
		return
	}
	var old []v1.NodeCondition
	if c.Old != nil {
		old = c.Old.(*v1.Node).Status.Conditions
	}
	if e.Fields = changedConditions(e.Fields, old, n.Status.Conditions); len(e.Fields) > 0 {
		e.Kind = trace.KindNode
	}
}
