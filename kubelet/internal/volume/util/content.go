package util

import (
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// SetUpContent writes a volume's content. wrap makes the emptyDir in which it
// is kept, unmount takes it away if the content can't be written.
func SetUpContent(host *volume.Host, r *volume.Request, wrap, unmount func() error, payload map[string]FileProjection) error {
	if err := wrap(); err != nil {
		return err
	}
	err := writeContent(host, r, payload)
	if err != nil {
		if err := unmount(); err != nil {
			host.Logf("Error tearing down volume %s that could not be set up: %v", r.Volume.Name, err)
		}
	}
	return err
}

// The ownership is set in the new version, before containers see it.
func writeContent(host *volume.Host, r *volume.Request, payload map[string]FileProjection) error {
	if err := MakeNestedMountpoints(host.FS, r.Volume.Name, r.Dir, r.Pod); err != nil {
		return err
	}
	return NewAtomicWriter(host, r.Dir, r.Pod.UID, r.Volume.Name).Write(payload, func() error {
		return SetVolumeOwnership(host.FS, r.Dir, true, r.FSGroup)
	})
}
