package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// SetUp implements volume.Plugin: it publishes a volume to a pod (csiMountMgr.SetUpAt).
func (p *Plugin) SetUp(ctx context.Context, r *volume.Request) error {
	name := r.Volume.Name
	req := &csispec.NodePublishVolumeRequest{TargetPath: r.Dir}
	var driver, fsType string
	var secretRef *v1.SecretReference
	mode := storagev1.VolumeLifecyclePersistent
	if r.PV != nil {
		source := r.PV.Spec.CSI
		name, driver, fsType, secretRef = r.PV.Name, source.Driver, source.FSType, source.NodePublishSecretRef
		req.VolumeId, req.VolumeContext, req.Readonly = source.VolumeHandle, maps.Clone(source.VolumeAttributes), r.ReadOnly
	} else {
		source := r.Volume.CSI
		mode, driver = storagev1.VolumeLifecycleEphemeral, source.Driver
		req.VolumeId, req.VolumeContext = inlineHandle(r.Pod.UID, name), maps.Clone(source.VolumeAttributes)
		req.Readonly = source.ReadOnly != nil && *source.ReadOnly
		if source.FSType != nil {
			fsType = *source.FSType
		}
		if source.NodePublishSecretRef != nil {
			secretRef = &v1.SecretReference{Namespace: r.Pod.Namespace, Name: source.NodePublishSecretRef.Name}
		}
	}
	c, err := p.drivers.client(ctx, driver)
	if err != nil {
		return wrap("mounter.SetUpAt failed to get CSI client", err)
	}
	defer c.close()
	object, err := p.driver(ctx, driver)
	if err != nil {
		return wrap("mounter.SetUpAt failed to get CSIDriver", err)
	}
	if err := supports(object, driver, mode); err != nil {
		return err
	}
	if r.PV != nil {
		if err := p.staged(ctx, c, r, object, req); err != nil {
			return err
		}
	}
	if req.Secrets, err = p.secret(ctx, secretRef); err != nil {
		return fmt.Errorf("fetching NodePublishSecretRef %s/%s failed: %w", secretRef.Namespace, secretRef.Name, err)
	}
	if err := p.describe(ctx, object, r, mode, req); err != nil {
		return err
	}
	data := volumeData{
		AttachmentID: attachmentName(req.VolumeId, driver, p.drivers.o.NodeName), Driver: driver, Node: p.drivers.o.NodeName,
		SpecVolume: name, Handle: req.VolumeId, Mode: string(mode),
	}
	if req.TargetPath, err = p.makePublished(r, data); err != nil {
		return err
	}
	group, err := c.mountGroup(ctx, r)
	if err != nil {
		return err
	}
	if req.VolumeCapability, err = c.capability(ctx, r.PV, fsType, group); err != nil {
		return err
	}
	_, err = within(ctx, func(ctx context.Context) (*csispec.NodePublishVolumeResponse, error) {
		return c.NodePublishVolume(ctx, req)
	})
	if err = progress(err); err != nil {
		var uncertain *volume.UncertainError
		if !errors.As(err, &uncertain) && !isBlock(r.PV) && !r.Present {
			p.removePublished(path.Dir(r.Dir))
		}
		return err
	}
	if isBlock(r.PV) {
		return p.mapDevice(r.Pod.UID, name)
	}
	if group == nil && ownsFiles(object, r, fsType) {
		if err := util.SetVolumeOwnershipBy(p.host.FS, r.Dir, req.Readonly, r.FSGroup, changePolicy(r.Pod)); err != nil {
			// The volume is published, and stays so until it is unmounted.
			return &volume.UncertainError{Err: fmt.Errorf("applyFSGroup failed for vol %s: %w", req.VolumeId, err)}
		}
	}
	return nil
}

// makePublished makes what a volume is published in, notes it, and returns where.
func (p *Plugin) makePublished(r *volume.Request, data volumeData) (string, error) {
	if isBlock(r.PV) {
		b := p.blockPaths(data.SpecVolume)
		if err := p.host.FS.MkdirAll(b.publishDir, 0o750); err != nil {
			return "", wrap("blockMapper.publishVolumeForBlock failed to create dir", err)
		}
		return b.publish(r.Pod.UID), nil
	}
	dir := path.Dir(r.Dir)
	if err := p.host.FS.MkdirAll(dir, 0o750); err != nil {
		return "", wrap(fmt.Sprintf("mounter.SetUpAt failed to create parent dir %q", dir), err)
	}
	if err := p.saveData(dir, data); err != nil {
		return "", wrap("mounter.SetUpAt failed to save volume info data", err)
	}
	return r.Dir, nil
}

// supports reports whether a driver has volumes of a lifecycle (supportsVolumeLifecycleMode).
// One without an object has PersistentVolumes alone.
func supports(d *storagev1.CSIDriver, name string, mode storagev1.VolumeLifecycleMode) error {
	switch {
	case d == nil && mode == storagev1.VolumeLifecyclePersistent:
		return nil
	case d == nil, !slices.Contains(d.Spec.VolumeLifecycleModes, mode):
		return errors.New(text("mounter.SetupAt failed to check volume lifecycle mode: volume mode %q not supported by driver %s", mode, name))
	}
	return nil
}

// staged says where a volume is staged, and what was said when it was attached.
func (p *Plugin) staged(ctx context.Context, c *client, r *volume.Request, d *storagev1.CSIDriver, req *csispec.NodePublishVolumeRequest) error {
	source := r.PV.Spec.CSI
	stages, err := c.can(ctx, csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	if err != nil {
		return wrap("mounter.SetUpAt failed to check for STAGE_UNSTAGE_VOLUME capability", err)
	}
	if stages {
		req.StagingTargetPath = p.stagingPath(r.PV)
	}
	if d == nil || d.Spec.AttachRequired == nil || *d.Spec.AttachRequired {
		req.PublishContext, err = p.publishContext(ctx, source.Driver, source.VolumeHandle)
	}
	return err
}

// describe adds what a driver wants to know of the pod, and tokens of its account
// (podinfo.go, podServiceAccountTokenAttrs).
func (p *Plugin) describe(ctx context.Context, d *storagev1.CSIDriver, r *volume.Request, mode storagev1.VolumeLifecycleMode, req *csispec.NodePublishVolumeRequest) error {
	if d == nil {
		return nil
	}
	add := func(key, value string) {
		if req.VolumeContext == nil {
			req.VolumeContext = map[string]string{}
		}
		req.VolumeContext["csi.storage.k8s.io/"+key] = value
	}
	if d.Spec.PodInfoOnMount != nil && *d.Spec.PodInfoOnMount {
		add("pod.name", r.Pod.Name)
		add("pod.namespace", r.Pod.Namespace)
		add("pod.uid", string(r.Pod.UID))
		add("serviceAccount.name", r.Pod.Spec.ServiceAccountName)
		add("ephemeral", fmt.Sprint(mode == storagev1.VolumeLifecycleEphemeral))
	}
	if len(d.Spec.TokenRequests) == 0 {
		return nil
	}
	tokens := map[string]authenticationv1.TokenRequestStatus{}
	for _, asked := range d.Spec.TokenRequests {
		tr := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: asked.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: r.Pod.Name, UID: r.Pod.UID},
		}}
		if asked.Audience != "" {
			tr.Spec.Audiences = []string{asked.Audience}
		}
		got, err := p.host.Tokens.GetServiceAccountToken(ctx, r.Pod.Namespace, r.Pod.Spec.ServiceAccountName, tr)
		if err != nil {
			return wrap("mounter.SetUpAt failed to get service accoount token attributes", err)
		}
		tokens[asked.Audience] = got.Status
	}
	data, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	if d.Spec.ServiceAccountTokenInSecrets != nil && *d.Spec.ServiceAccountTokenInSecrets {
		if req.Secrets == nil {
			req.Secrets = map[string]string{}
		}
		req.Secrets["csi.storage.k8s.io/serviceAccount.tokens"] = string(data)
		return nil
	}
	add("serviceAccount.tokens", string(data))
	return nil
}

// ownsFiles reports whether the kubelet gives a volume's files to the pod's fsGroup
// (supportsFSGroup). A driver that does not say has it done for what one node writes to and
// has a file system of a stated kind.
func ownsFiles(d *storagev1.CSIDriver, r *volume.Request, fsType string) bool {
	if r.FSGroup == nil {
		return false
	}
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if d != nil && d.Spec.FSGroupPolicy != nil {
		policy = *d.Spec.FSGroupPolicy
	}
	switch policy {
	case storagev1.FileFSGroupPolicy:
		return true
	case storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy:
		return fsType != "" && readWriteOnce(r.PV)
	}
	return false
}

func changePolicy(pod *v1.Pod) *v1.PodFSGroupChangePolicy {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroupChangePolicy
	}
	return nil
}

// TearDown implements volume.Plugin (csiMountMgr.TearDownAt).
func (p *Plugin) TearDown(ctx context.Context, uid types.UID, name string) error {
	if _, err := p.host.FS.Lstat(p.blockPaths(name).volume); err == nil {
		return p.unmapDevice(ctx, uid, name)
	}
	dir := p.host.VolumeDir(uid, PluginName, name)
	d, err := p.loadData(dir)
	if err != nil {
		return wrap("unmounter failed to load volume data file", err)
	}
	c, err := p.drivers.client(ctx, d.Driver)
	if err != nil {
		return wrap("Unmounter.TearDownAt failed to get CSI client", err)
	}
	defer c.close()
	_, err = within(ctx, func(ctx context.Context) (*csispec.NodeUnpublishVolumeResponse, error) {
		return c.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: d.Handle, TargetPath: path.Join(dir, "mount")})
	})
	if err != nil {
		return wrap("Unmounter.TearDownAt failed", err)
	}
	p.removePublished(dir)
	return nil
}

// removePublished removes what is left of a pod's volume after its driver has taken it
// away. What is still mounted stays.
func (p *Plugin) removePublished(dir string) {
	if _, err := p.host.FS.Lstat(path.Join(dir, "mount")); err == nil {
		if err := p.host.FS.Remove(path.Join(dir, "mount")); err != nil {
			p.host.Logf("%s", text("failed to remove dir [%s]: %v", dir, err))
			return
		}
	}
	p.discard(dir)
	for _, name := range []string{dataFile, ""} {
		if err := p.host.FS.Remove(path.Join(dir, name)); err != nil {
			p.host.Logf("%s", text("%v", err))
			return
		}
	}
}

// Expand implements volume.DeviceMounter (expander.go, NodeExpand).
func (p *Plugin) Expand(ctx context.Context, r *volume.Request) (bool, error) {
	source := r.PV.Spec.CSI
	c, err := p.drivers.client(ctx, source.Driver)
	if err != nil {
		return false, err
	}
	defer c.close()
	can, err := c.can(ctx, csispec.NodeServiceCapability_RPC_EXPAND_VOLUME)
	if err != nil || !can {
		return false, err
	}
	stages, err := c.can(ctx, csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	if err != nil {
		return false, err
	}
	req := &csispec.NodeExpandVolumeRequest{VolumeId: source.VolumeHandle, VolumePath: r.Dir, CapacityRange: &csispec.CapacityRange{
		RequiredBytes: r.PV.Spec.Capacity.Storage().Value(),
	}}
	if stages {
		req.StagingTargetPath = p.stagingPath(r.PV)
	}
	if req.VolumeCapability, err = c.capability(ctx, r.PV, source.FSType, nil); err != nil {
		return false, err
	}
	_, err = within(ctx, func(ctx context.Context) (*csispec.NodeExpandVolumeResponse, error) {
		return c.NodeExpandVolume(ctx, req)
	})
	return err == nil, err
}

// Stats implements volume.DeviceMounter (metricsCsi.GetMetrics).
func (p *Plugin) Stats(ctx context.Context, uid types.UID, name string) (volume.Stats, bool, error) {
	var out volume.Stats
	dir := p.host.VolumeDir(uid, PluginName, name)
	d, err := p.loadData(dir)
	if err != nil {
		return out, false, err
	}
	c, err := p.drivers.client(ctx, d.Driver)
	if err != nil {
		return out, false, err
	}
	defer c.close()
	can, err := c.can(ctx, csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS)
	if err != nil || !can {
		return out, false, err
	}
	resp, err := within(ctx, func(ctx context.Context) (*csispec.NodeGetVolumeStatsResponse, error) {
		return c.NodeGetVolumeStats(ctx, &csispec.NodeGetVolumeStatsRequest{VolumeId: d.Handle, VolumePath: path.Join(dir, "mount")})
	})
	if err != nil {
		return out, false, err
	}
	tells := false
	if p.drivers.o.VolumeHealth {
		if tells, err = c.can(ctx, csispec.NodeServiceCapability_RPC_VOLUME_CONDITION); err != nil {
			return out, false, err
		}
	}
	if tells {
		out.Abnormal, out.Message = new(resp.VolumeCondition.GetAbnormal()), resp.VolumeCondition.GetMessage()
	} else if resp.Usage == nil {
		return out, false, errors.New("failed to get usage from response. usage is nil")
	}
	for _, u := range resp.Usage {
		switch u.Unit {
		case csispec.VolumeUsage_BYTES:
			out.Capacity, out.Used, out.Available = u.Total, u.Used, u.Available
		case csispec.VolumeUsage_INODES:
			out.Inodes, out.InodesUsed, out.InodesFree = u.Total, u.Used, u.Available
		}
	}
	return out, true, nil
}
