//go:build linux

package conformance

import (
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

const (
	// Short names of the states.
	ready    = runtimeapi.PodSandboxState_SANDBOX_READY
	notReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

// sandboxChecks are about pods' sandboxes.
func sandboxChecks() []*check {
	return []*check{
		{name: "cri/sandbox/run", level: Required, run: checkSandboxRun,
			expect: "A sandbox that was run is SANDBOX_READY in its status and in a list filtered by its id, with a created_at in nanoseconds of about now."},
		{name: "cri/sandbox/config-kept", level: Required, run: checkSandboxConfig,
			expect: "Metadata (name, uid, namespace, attempt), labels and annotations come back as they were given, in the status and in lists."},
		{name: "cri/sandbox/stop", level: Required, run: checkSandboxStop,
			expect: "StopPodSandbox makes a sandbox SANDBOX_NOTREADY by the time it returns; the sandbox is still listed and its status can be read; a second stop succeeds."},
		{name: "cri/sandbox/remove", level: Required, run: checkSandboxRemove,
			expect: "RemovePodSandbox takes a sandbox out of lists and its status becomes NotFound; a second removal succeeds."},
		{name: "cri/sandbox/remove-running", level: Required, run: checkSandboxRemoveRunning,
			expect: "RemovePodSandbox of a stopped sandbox removes its containers with it."},
		{name: "cri/sandbox/stop-stops-containers", level: Required, run: checkSandboxStopsContainers,
			expect: "StopPodSandbox ends the sandbox' containers, which are CONTAINER_EXITED when it returns, and still there."},
		{name: "cri/sandbox/unknown", level: Required, run: checkSandboxUnknown,
			expect: "For an unknown id PodSandboxStatus fails with NotFound, RemovePodSandbox succeeds, and StopPodSandbox succeeds or fails with NotFound."},
		{name: "cri/sandbox/filters", level: Required, run: checkSandboxFilters,
			expect: "ListPodSandbox honours the filters id, state and label_selector, alone and together, and lists all without one."},
		{name: "cri/sandbox/duplicate", level: Required, run: checkSandboxDuplicate,
			expect: "A second sandbox with the same name, namespace, uid and attempt is refused while the first is there; another attempt is not, and after a removal the same may come again."},
		{name: "cri/sandbox/failure-leaves-nothing", level: Required, run: checkSandboxFailure,
			expect: "RunPodSandbox with an unknown runtime handler fails, leaves nothing in lists, and the same metadata can be used again."},
		{name: "cri/sandbox/address", level: Required, run: checkSandboxAddress,
			expect: "A sandbox with a network of its own has network.ip in its status, no other has the same, and a new attempt after a stop gets one as well."},
		{name: "cri/sandbox/host-network", level: Required, run: checkSandboxHostNetwork,
			expect: "A sandbox of the host's network is run, and its status says that its network is the node's."},
	}
}

// listSandboxes is ListPodSandbox; nil lists all. It fails the check if the call does.
func (t *T) listSandboxes(ctx context.Context, f *runtimeapi.PodSandboxFilter) []*runtimeapi.PodSandbox {
	r, err := t.rt.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: f})
	t.must(err, "ListPodSandbox")
	return r.Items
}

// sandboxIDs are the IDs of such a list.
func (t *T) sandboxIDs(ctx context.Context, f *runtimeapi.PodSandboxFilter) []string {
	return lists.Map(t.listSandboxes(ctx, f), func(s *runtimeapi.PodSandbox) string { return s.Id })
}

// theSandbox is the one item of a list filtered by id.
func (t *T) theSandbox(ctx context.Context, id string) *runtimeapi.PodSandbox {
	list := t.listSandboxes(ctx, &runtimeapi.PodSandboxFilter{Id: id})
	if len(list) != 1 || list[0].Id != id {
		t.Fatalf("a list filtered by the sandbox' id has %d items, not that one", len(list))
	}
	return list[0]
}

// stopPod is StopPodSandbox of one that is there.
func (t *T) stopPod(ctx context.Context, id string) {
	_, err := t.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	t.must(err, "StopPodSandbox")
}

// removePod is RemovePodSandbox, which must work also for what is not there.
func (t *T) removePod(ctx context.Context, id string) {
	_, err := t.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	t.must(err, "RemovePodSandbox")
}

// aboutNow says that a time, in nanoseconds, is not within a few minutes of now
// (the runtime's clock may be another's). Minutes, because the runtime's clock
// may be another machine's. Wrong units are what it finds: seconds or microseconds are far from
// now.
func (t *T) aboutNow(what string, ns int64) {
	if d := time.Since(time.Unix(0, ns)).Abs(); ns <= 0 || d > 10*time.Minute {
		t.Errorf("%s is %d, which is not about now in nanoseconds since 1970", what, ns)
	}
}

// stopAbsent stops a sandbox that is not there: kubelets take NotFound as done.
func (t *T) stopAbsent(ctx context.Context, id string) {
	_, err := t.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	if status.Code(err) != codes.NotFound {
		t.must(err, "StopPodSandbox of a sandbox that is not there")
	}
}

// checkSandboxRun: a sandbox that was run is ready, in status and list alike.
func checkSandboxRun(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	s, item := t.sandboxStatus(ctx, p.id), t.theSandbox(ctx, p.id)
	if s.State != ready || item.State != ready {
		t.Errorf("its state is %s in the status and %s in the list, not %s", s.State, item.State, ready)
	}
	if s.Id != p.id {
		t.Errorf("the status' id is %q, not %q", s.Id, p.id)
	}
	t.aboutNow("created_at in the status", s.CreatedAt)
	if s.CreatedAt != item.CreatedAt {
		t.Errorf("created_at is %d in the status and %d in the list", s.CreatedAt, item.CreatedAt)
	}
}

// sameMap says how a map that came differs; extra tells that more is fine.
// Runtimes add annotations of their own, and may; labels they may not. Keys are sorted, so that
// messages are the same each time.
func (t *T) sameMap(what string, want, got map[string]string, extra bool) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[k]; !ok || v != want[k] {
			t.Errorf("%s[%q] is %q, not %q", what, k, v, want[k])
		}
	}
	if !extra && len(got) != len(want) {
		t.Errorf("%s has %d entries, not %d", what, len(got), len(want))
	}
}

// checkSandboxConfig: metadata, labels and annotations are kept: a kubelet that
// restarts knows its pods by them alone.
func checkSandboxConfig(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	s, item := t.sandboxStatus(ctx, p.id), t.theSandbox(ctx, p.id)
	for where, got := range map[string]struct {
		m                   *runtimeapi.PodSandboxMetadata
		labels, annotations map[string]string
	}{"the status": {s.Metadata, s.Labels, s.Annotations}, "the list": {item.Metadata, item.Labels, item.Annotations}} {
		if !proto.Equal(got.m, p.config.Metadata) {
			t.Errorf("metadata in %s is %v, not %v", where, got.m, p.config.Metadata)
		}
		t.sameMap("labels in "+where, p.config.Labels, got.labels, true)
		t.sameMap("annotations in "+where, p.config.Annotations, got.annotations, true)
	}
}

// checkSandboxStop: it may be repeated, and the sandbox stays listed until it is
// removed. Kubelets stop sandboxes again and again until they are removed.
func checkSandboxStop(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	for range 2 {
		t.stopPod(ctx, p.id)
		if s, item := t.sandboxStatus(ctx, p.id), t.theSandbox(ctx, p.id); s.State != notReady || item.State != notReady {
			t.Errorf("after StopPodSandbox its state is %s in the status and %s in the list, not %s", s.State, item.State, notReady)
		}
	}
}

// checkSandboxRemove: it may be repeated, and the sandbox is gone from lists and
// status.
func checkSandboxRemove(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	t.stopPod(ctx, p.id)
	t.removePod(ctx, p.id)
	if slices.Contains(t.sandboxIDs(ctx, nil), p.id) || len(t.sandboxIDs(ctx, &runtimeapi.PodSandboxFilter{Id: p.id})) > 0 {
		t.Errorf("it is still listed")
	}
	_, err := t.rt.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	t.wantCode(err, codes.NotFound, "PodSandboxStatus of a removed sandbox")
	t.removePod(ctx, p.id)
	t.stopAbsent(ctx, p.id)
}

// checkSandboxRemoveRunning: its containers go with it, whatever state they are
// in. The CRI says so: containers in it must be forcibly removed.
func checkSandboxRemoveRunning(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.start(ctx, p, nil, "run")
	d := t.create(ctx, p, nil, "run")
	t.stopPod(ctx, p.id)
	t.removePod(ctx, p.id)
	ids := t.containerIDs(ctx, nil)
	for _, id := range []string{c.id, d.id} {
		if slices.Contains(ids, id) {
			t.Errorf("container %s is still listed", id)
		}
		_, err := t.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		t.wantCode(err, codes.NotFound, "ContainerStatus of a container that went with its sandbox")
	}
}

// checkSandboxStopsContainers: containers that still run are ended by force, also
// stubborn ones.
func checkSandboxStopsContainers(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.start(ctx, p, nil, "run")
	stubborn := t.start(ctx, p, nil, "run", "--ignore=TERM")
	t.stopPod(ctx, p.id)
	for _, id := range []string{c.id, stubborn.id} {
		if s := t.status(ctx, id); s.State != runtimeapi.ContainerState_CONTAINER_EXITED {
			t.Errorf("a container of the stopped sandbox is %s", s.State)
		}
		if !slices.Contains(t.containerIDs(ctx, &runtimeapi.ContainerFilter{PodSandboxId: p.id}), id) {
			t.Errorf("a container of the stopped sandbox is not listed any more")
		}
	}
}

// checkSandboxUnknown: status says NotFound; stopping and removing are content,
// or the kubelet's cleanup would never end. The id has the right form, so a runtime can't refuse
// it for that.
func checkSandboxUnknown(ctx context.Context, t *T) {
	id := t.unknownID()
	_, err := t.rt.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	t.wantCode(err, codes.NotFound, "PodSandboxStatus of an unknown id")
	t.stopAbsent(ctx, id)
	t.removePod(ctx, id)
	if list := t.sandboxIDs(ctx, &runtimeapi.PodSandboxFilter{Id: id}); len(list) > 0 {
		t.Errorf("a list filtered by an unknown id has %d items", len(list))
	}
}

// checkSandboxFilters: by ID, state and labels, each alone and together.
func checkSandboxFilters(ctx context.Context, t *T) {
	value := t.unknownID()[:40]
	label := func(v string) func(*runtimeapi.PodSandboxConfig) {
		return func(c *runtimeapi.PodSandboxConfig) { c.Labels["group"], c.Labels["one"] = value, v }
	}
	a, b, c := t.pod(ctx, label("a")), t.pod(ctx, label("b")), t.pod(ctx, nil)
	t.stopPod(ctx, b.id)
	state := func(s runtimeapi.PodSandboxState) *runtimeapi.PodSandboxStateValue {
		return &runtimeapi.PodSandboxStateValue{State: s}
	}
	sel := map[string]string{"group": value}
	all := []string{a.id, b.id, c.id}
	for _, x := range []struct {
		what string
		f    *runtimeapi.PodSandboxFilter
		want []string
	}{
		{"no filter", nil, all},
		{"an empty filter", &runtimeapi.PodSandboxFilter{}, all},
		{"id", &runtimeapi.PodSandboxFilter{Id: a.id}, []string{a.id}},
		{"state ready", &runtimeapi.PodSandboxFilter{State: state(ready)}, []string{a.id, c.id}},
		{"state not ready", &runtimeapi.PodSandboxFilter{State: state(notReady)}, []string{b.id}},
		{"a label", &runtimeapi.PodSandboxFilter{LabelSelector: sel}, []string{a.id, b.id}},
		{"two labels", &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"group": value, "one": "b"}}, []string{b.id}},
		{"labels that none has together", &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"group": value, "one": "c"}}, nil},
		{"a label and a state", &runtimeapi.PodSandboxFilter{LabelSelector: sel, State: state(ready)}, []string{a.id}},
		{"an id and another's label", &runtimeapi.PodSandboxFilter{Id: c.id, LabelSelector: sel}, nil},
		{"an id and another state", &runtimeapi.PodSandboxFilter{Id: a.id, State: state(notReady)}, nil},
	} {
		t.sameAmong("a list of sandboxes filtered by "+x.what, all, x.want, t.sandboxIDs(ctx, x.f))
	}
}

// sameAmong says which of some ids are missing in a list, or in it though they
// should not be; the list may hold others' besides. Numbers are places in among, as ids say
// nothing to a reader.
func (t *T) sameAmong(what string, among, want, got []string) {
	for _, id := range among {
		switch has, should := slices.Contains(got, id), slices.Contains(want, id); {
		case has && !should:
			t.Errorf("%s has number %d of the check's own, which does not match", what, slices.Index(among, id)+1)
		case !has && should:
			t.Errorf("%s lacks number %d of the check's own, which matches", what, slices.Index(among, id)+1)
		}
	}
}

// checkSandboxDuplicate: the same metadata twice is an error, another attempt is
// not. A RunPodSandbox whose answer was lost is repeated with the next attempt, and the first
// must be found.
func checkSandboxDuplicate(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	_, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: p.config})
	t.wantError(err, "RunPodSandbox with the metadata of one that is there")
	next := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) {
		c.Metadata = proto.Clone(p.config.Metadata).(*runtimeapi.PodSandboxMetadata)
		c.Metadata.Attempt++
	})
	if next.id == p.id {
		t.Errorf("another attempt got the same id")
	}
	t.stopPod(ctx, p.id)
	t.removePod(ctx, p.id)
	r, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: p.config})
	t.must(err, "RunPodSandbox with the metadata of a removed one")
	if r.PodSandboxId == p.id {
		t.Errorf("the id of a removed sandbox was used again")
	}
}

// checkSandboxFailure: a sandbox that could not be run leaves nothing that would
// be listed. What is left would hold an address, and a name.
func checkSandboxFailure(ctx context.Context, t *T) {
	c := t.podConfig()
	_, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c, RuntimeHandler: "no-such-handler"})
	t.wantError(err, "RunPodSandbox with an unknown handler")
	for _, s := range t.listSandboxes(ctx, nil) {
		if s.GetMetadata().GetUid() == c.Metadata.Uid {
			t.Errorf("the sandbox that could not be run is listed as %s, %s", s.Id, s.State)
		}
	}
	_, err = t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	t.must(err, "RunPodSandbox with the same metadata, after a failure")
}

// checkSandboxAddress: each pod has an address of its own, which goes into its
// status. The address of a sandbox that was stopped may be given out again, but not one in use.
func checkSandboxAddress(ctx context.Context, t *T) {
	p, other := t.pod(ctx, nil), t.pod(ctx, nil)
	ip, ip2 := t.podIP(ctx, p), t.podIP(ctx, other)
	if net.ParseIP(ip) == nil {
		t.Errorf("network.ip is %q, which is no address", ip)
	}
	if ip == ip2 {
		t.Errorf("two sandboxes have the address %s", ip)
	}
	t.stopPod(ctx, p.id)
	next := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) {
		c.Metadata = proto.Clone(p.config.Metadata).(*runtimeapi.PodSandboxMetadata)
		c.Metadata.Attempt++
	})
	if ip3 := t.podIP(ctx, next); ip3 == ip2 {
		t.Errorf("two sandboxes have the address %s", ip3)
	}
}

// checkSandboxHostNetwork: the namespaces asked for are told back; the kubelet
// compares them to see whether a pod needs a new sandbox. pkg/kubelet/kuberuntime compares it in
// podSandboxChanged.
func checkSandboxHostNetwork(ctx context.Context, t *T) {
	p := t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) {
		c.Hostname = ""
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	})
	s := t.sandboxStatus(ctx, p.id)
	if mode := s.GetLinux().GetNamespaces().GetOptions().GetNetwork(); mode != runtimeapi.NamespaceMode_NODE {
		t.Errorf("linux.namespaces.options.network in the status is %s, not NODE", mode)
	}
	if s.State != ready {
		t.Errorf("its state is %s", s.State)
	}
}
