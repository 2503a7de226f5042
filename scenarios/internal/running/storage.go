package running

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// addStorage adds what is behind the nodes' drivers of CSI, and servers of NFS.
func (p *performance) addStorage() error {
	for i := range p.s.Spec.NFS {
		p.cluster.StartNFS(p.s.Spec.NFS[i].Options())
	}
	for _, st := range p.s.Spec.AllStorage() {
		s := p.cluster.StartStorage(st.Options())
		s.AddRules(st.Rules()...)
		if _, err := p.cluster.API().Create(st.Object()); err != nil {
			return fmt.Errorf("CSIDriver %s: %w", st.Driver, err)
		}
	}
	return nil
}

// warnOfClaims says once that claims are bound to directories of nodes, and once of each
// provisioner that is none of the simulation's and of each volume that no kubelet mounts.
func (p *performance) warnOfClaims() {
	bound, absent := false, map[string]bool{}
	p.cluster.Store().OnChange(func(c apiserver.Change) {
		source := c.New.(*v1.PersistentVolume).Spec.PersistentVolumeSource
		if c.Old == nil && source.CSI == nil && source.HostPath == nil && source.Local == nil && source.NFS == nil {
			p.journal.warn(fmt.Sprintf("persistentvolume %s: volumes of this kind are not supported, so pods that use it wait", c.New.GetName()))
		}
		if pv := c.New.(*v1.PersistentVolume); !bound && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == controlplane.NodeStorage {
			bound = true
			p.journal.warn("claims are bound to directories of the nodes of their pods, as nobody makes volumes for them (docs/manifests.md)")
		}
	}, apiserver.KindPersistentVolume)
	p.cluster.Store().OnChange(func(c apiserver.Change) {
		claim := c.New.(*v1.PersistentVolumeClaim)
		by := claim.Annotations[volumehelper.AnnStorageProvisioner]
		if by == "" || absent[by] || claim.Spec.VolumeName != "" || p.cluster.Storage(by) != nil {
			return
		}
		absent[by] = true
		p.journal.warn(fmt.Sprintf("claim %s/%s waits for the provisioner %s, which is no driver of the nodes (docs/volumes.md)", claim.Namespace, claim.Name, by))
	}, apiserver.KindPersistentVolumeClaim)
}
