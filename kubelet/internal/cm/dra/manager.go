package dra

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// reconcilePeriod is how often claims of pods that are gone are looked for.
const reconcilePeriod = 60 * time.Second

// Client reads claims from the API.
type Client interface {
	GetResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
}

// FS is where the checkpoint is.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// Config are what a Manager is made of.
type Config struct {
	Group *loop.Group
	// Plugins are the machine's drivers; nil: there are none.
	Plugins cm.DRAPlugins
	// Health knows how devices are; nil: nobody does.
	Health *Plugins
	// Client reads claims; nil: there is no API, and no pod can have any.
	Client Client
	// FS and Dir say where the checkpoint is.
	FS  FS
	Dir string
	// ActivePods are those that have a right to their claims.
	ActivePods func() []*v1.Pod
	// SourcesReady reports whether ActivePods can be all there are.
	SourcesReady func() bool
	// Started is when the kubelet was.
	Started time.Time
	// Log takes log lines.
	Log func(format string, args ...any)
}

// Manager is one kubelet's DRA manager. It is for use on one loop; between a call to a
// driver and its answer others may be at work.
type Manager struct {
	c      Config
	claims map[key]*claimInfo
	// reconciler runs while there are claims; nil: there were none yet.
	reconciler *loop.Timer
}

// New returns a manager.
func New(c Config) *Manager {
	return &Manager{c: c}
}

// Start takes over what the checkpoint says.
func (m *Manager) Start() error {
	err := m.readCheckpoint()
	m.armReconciler()
	return err
}

// armReconciler has the next pass come at its time, if there is anything for it to find.
func (m *Manager) armReconciler() {
	if len(m.claims) == 0 {
		return
	}
	if m.reconciler == nil {
		m.reconciler = m.c.Group.NewTimer("dra-manager", func() { m.c.Group.Go("dra-manager", m.reconcile) })
	}
	if !m.reconciler.Set() {
		m.reconciler.Reset(reconcilePeriod - m.c.Group.Loop().Since(m.c.Started)%reconcilePeriod)
	}
}

// know takes a claim in. A node that has none has no room for them.
func (m *Manager) know(k key, info *claimInfo) {
	if m.claims == nil {
		m.claims = map[key]*claimInfo{}
	}
	m.claims[k] = info
}

// plugin returns a driver.
func (m *Manager) plugin(name string) (cm.DRAPlugin, error) {
	if m.c.Plugins != nil {
		if p := m.c.Plugins.DRAPlugin(name); p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("DRA driver %s is not registered", name)
}

// Has reports whether a pod has claims.
func Has(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// podClaims are a pod's claims: those of its spec, and that of its extended resources.
func podClaims(pod *v1.Pod) []v1.PodResourceClaim {
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		return append(slices.Clone(pod.Spec.ResourceClaims), v1.PodResourceClaim{ResourceClaimName: &s.ResourceClaimName})
	}
	return pod.Spec.ResourceClaims
}

// Prepare has drivers prepare a pod's claims. The error tells why the pod can't start
// (PrepareResources).
func (m *Manager) Prepare(ctx context.Context, pod *v1.Pod) error {
	claims := podClaims(pod)
	if len(claims) == 0 {
		return nil
	}
	if err := m.prepare(ctx, pod, claims); err != nil {
		return fmt.Errorf("prepare dynamic resources: %w", err)
	}
	return nil
}

func (m *Manager) prepare(ctx context.Context, pod *v1.Pod, claims []v1.PodResourceClaim) error {
	// All is checked before anything is noted: a pod that fails here can go without a
	// call to drivers that may never have been there.
	var infos []*claimInfo
	for i := range claims {
		info, err := m.check(ctx, pod, &claims[i])
		if err != nil {
			return err
		}
		if info != nil {
			infos = append(infos, info)
		}
	}
	var unprepared []*claimInfo
	for _, info := range infos {
		k := key{Namespace: info.Namespace, Name: info.ClaimName}
		if known := m.claims[k]; known == nil {
			m.know(k, info)
		} else if known.ClaimUID != info.ClaimUID {
			return fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", info.ClaimName, known.ClaimUID)
		} else {
			info = known
		}
		info.PodUIDs.Insert(string(pod.UID))
		m.armReconciler()
		// Before the call: should it fail and the pod go, the next kubelet knows whom to
		// ask.
		if err := m.writeCheckpoint(); err != nil {
			return fmt.Errorf("checkpoint ResourceClaim cache: %w", err)
		}
		if !info.prepared {
			unprepared = append(unprepared, info)
		}
	}
	batches, names := byDriver(unprepared)
	for _, name := range names {
		if err := m.prepareBatch(ctx, name, batches[name]); err != nil {
			return err
		}
	}
	for _, info := range unprepared {
		info.prepared = true
	}
	if err := m.writeCheckpoint(); err != nil {
		return fmt.Errorf("checkpoint ResourceClaim state: %w", err)
	}
	return nil
}

// check reads a claim and looks whether the pod may use it; nil: no claim is needed.
func (m *Manager) check(ctx context.Context, pod *v1.Pod, pc *v1.PodResourceClaim) (*claimInfo, error) {
	name, mustCheckOwner, err := resourceclaim.Name(pod, pc)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if name == nil {
		return nil, nil //nolint:nilnil // see above
	}
	if m.c.Client == nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", *name, errors.New("there is no API server"))
	}
	claim, err := m.c.Client.GetResourceClaim(ctx, pod.Namespace, *name)
	if err != nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", *name, err)
	}
	if mustCheckOwner {
		if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
			return nil, fmt.Errorf("%w", err)
		}
	}
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		return nil, fmt.Errorf("pod %s (%s) is not allowed to use ResourceClaim %s (%s)", pod.Name, pod.UID, *name, claim.UID)
	}
	info, err := newClaimInfo(claim)
	if err != nil {
		return nil, fmt.Errorf("ResourceClaim %s: %w", claim.Name, err)
	}
	for _, driver := range info.drivers() {
		if _, err := m.plugin(driver); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// byDriver are claims by their drivers, and the drivers' names in order.
func byDriver(infos []*claimInfo) (map[string][]*claimInfo, []string) {
	batches := map[string][]*claimInfo{}
	var names []string
	for _, info := range infos {
		for _, name := range info.drivers() {
			if batches[name] == nil {
				names = append(names, name)
			}
			batches[name] = append(batches[name], info)
		}
	}
	slices.Sort(names)
	return batches, names
}

// prepareBatch is one call of NodePrepareResources.
func (m *Manager) prepareBatch(ctx context.Context, driver string, infos []*claimInfo) error {
	p, err := m.plugin(driver)
	if err != nil {
		return err
	}
	req := &drapb.NodePrepareResourcesRequest{}
	for _, info := range infos {
		req.Claims = append(req.Claims, info.request())
	}
	resp, err := p.NodePrepareResources(ctx, req)
	if err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	answered := 0
	for _, info := range infos {
		r := resp.Claims[string(info.ClaimUID)]
		if r == nil {
			continue
		}
		answered++
		if r.Error != "" {
			return fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", info.ClaimName, r.Error)
		}
		info.DriverState[driver] = driverState{} // a second try begins anew
		for _, d := range r.Devices {
			info.addDevice(driver, d)
		}
	}
	if n := len(infos) - answered; n != 0 {
		return fmt.Errorf("NodePrepareResources skipped %d ResourceClaims", n)
	}
	return nil
}

// CDIDevices are the CDI devices of a container of a pod that was prepared
// (GetResources).
func (m *Manager) CDIDevices(pod *v1.Pod, c *v1.Container) ([]string, error) {
	var out []string
	for i := range pod.Spec.ResourceClaims {
		pc := &pod.Spec.ResourceClaims[i]
		for _, use := range c.Resources.Claims {
			if use.Name != pc.Name {
				continue
			}
			name, _, err := resourceclaim.Name(pod, pc)
			if err != nil {
				return nil, fmt.Errorf("%w", err)
			}
			if name == nil {
				continue
			}
			info := m.claims[key{Namespace: pod.Namespace, Name: *name}]
			if info == nil {
				return nil, fmt.Errorf("internal error: unable to get claim info for ResourceClaim %s in namespace %s", *name, pod.Namespace)
			}
			out = append(out, info.cdiDevices(use.Request)...)
		}
	}
	extended := pod.Status.ExtendedResourceClaimStatus
	if extended == nil {
		return out, nil
	}
	for _, use := range extended.RequestMappings {
		if q := c.Resources.Requests[v1.ResourceName(use.ResourceName)]; use.ContainerName != c.Name || q.IsZero() {
			continue
		}
		info := m.claims[key{Namespace: pod.Namespace, Name: extended.ResourceClaimName}]
		if info == nil {
			return nil, fmt.Errorf("internal error: unable to get claim info for ResourceClaim %s in namespace %s", extended.ResourceClaimName, pod.Namespace)
		}
		out = append(out, info.cdiDevices(use.RequestName)...)
	}
	return out, nil
}

// Unprepare has drivers take back what only this pod used. It may be called again
// (UnprepareResources).
func (m *Manager) Unprepare(ctx context.Context, pod *v1.Pod) error {
	var names []string
	for _, pc := range podClaims(pod) {
		name, _, err := resourceclaim.Name(pod, &pc)
		if err != nil {
			return fmt.Errorf("unprepare dynamic resources: %w", err)
		}
		if name != nil {
			names = append(names, *name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := m.unprepare(ctx, pod.UID, pod.Namespace, names); err != nil {
		return fmt.Errorf("unprepare dynamic resources: %w", err)
	}
	return nil
}

func (m *Manager) unprepare(ctx context.Context, pod types.UID, namespace string, names []string) error {
	var last []*claimInfo
	for _, name := range names {
		info := m.claims[key{Namespace: namespace, Name: name}]
		switch {
		case info == nil:
		case len(info.PodUIDs) > 1:
			info.PodUIDs.Delete(string(pod))
		default:
			last = append(last, info)
		}
	}
	batches, drivers := byDriver(last)
	for _, name := range drivers {
		if err := m.unprepareBatch(ctx, name, batches[name]); err != nil {
			return err
		}
	}
	for _, info := range last {
		delete(m.claims, key{Namespace: info.Namespace, Name: info.ClaimName})
	}
	if err := m.writeCheckpoint(); err != nil {
		return fmt.Errorf("checkpoint ResourceClaim state: %w", err)
	}
	return nil
}

// unprepareBatch is one call of NodeUnprepareResources.
func (m *Manager) unprepareBatch(ctx context.Context, driver string, infos []*claimInfo) error {
	p, err := m.plugin(driver)
	if err != nil {
		return err
	}
	req := &drapb.NodeUnprepareResourcesRequest{}
	for _, info := range infos {
		req.Claims = append(req.Claims, info.request())
	}
	resp, err := p.NodeUnprepareResources(ctx, req)
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	answered := 0
	for _, info := range infos {
		r := resp.Claims[string(info.ClaimUID)]
		if r == nil {
			continue
		}
		answered++
		if r.Error != "" {
			return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", info.ClaimName, r.Error)
		}
	}
	if n := len(infos) - answered; n != 0 {
		return fmt.Errorf("NodeUnprepareResources skipped %d ResourceClaims", n)
	}
	return nil
}

// reconcile takes the claims back of pods that went without (reconcileLoop).
func (m *Manager) reconcile(ctx context.Context) {
	defer m.armReconciler()
	if !m.c.SourcesReady() {
		return
	}
	active := map[string]bool{}
	for _, p := range m.c.ActivePods() {
		active[string(p.UID)] = true
	}
	type podOf struct{ uid, namespace string }
	gone := map[podOf][]string{}
	var order []podOf
	for _, info := range m.sorted() {
		for _, uid := range sets.List(info.PodUIDs) {
			if p := (podOf{uid, info.Namespace}); !active[uid] {
				if gone[p] == nil {
					order = append(order, p)
				}
				gone[p] = append(gone[p], info.ClaimName)
			}
		}
	}
	for _, p := range order {
		if err := m.unprepare(ctx, types.UID(p.uid), p.namespace, gone[p]); err != nil {
			m.c.Log("Unpreparing pod resources in reconcile loop failed, will retry podUID=%s: %v", p.uid, err)
		}
	}
}
