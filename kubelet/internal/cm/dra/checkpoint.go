package dra

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// stateFile is upstream's name of the file, below the kubelet's root directory.
const stateFile = "dra_manager_state"

// checkpoint is the file (state.Checkpoint).
type checkpoint struct {
	// Data is a checkpointData as JSON, and Checksum its CRC-32.
	Data     string
	Checksum uint32
}

type checkpointData struct {
	metav1.TypeMeta
	ClaimInfoStateList []claimState
}

// HasState reports whether an earlier kubelet left a checkpoint.
func HasState(files FS, dir string) bool {
	_, err := files.ReadFile(path.Join(dir, stateFile))
	return err == nil
}

// writeCheckpoint keeps the claims for the next kubelet.
func (m *Manager) writeCheckpoint() error {
	d := checkpointData{
		TypeMeta:           metav1.TypeMeta{Kind: "DRACheckpoint", APIVersion: "checkpoint.dra.kubelet.k8s.io/v1"},
		ClaimInfoStateList: []claimState{},
	}
	for _, c := range m.sorted() {
		d.ClaimInfoStateList = append(d.ClaimInfoStateList, c.claimState)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("marshalling %s: %w", stateFile, err)
	}
	file, err := json.Marshal(checkpoint{Data: string(data), Checksum: crc32.ChecksumIEEE(data)})
	if err != nil {
		return fmt.Errorf("marshalling %s: %w", stateFile, err)
	}
	if err := filesystem.Replace(m.c.FS, path.Join(m.c.Dir, stateFile), file, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", stateFile, err)
	}
	return nil
}

// readCheckpoint takes over an earlier kubelet's claims. They count as not prepared: a
// driver is asked again, which it must bear.
func (m *Manager) readCheckpoint() error {
	data, err := m.c.FS.ReadFile(path.Join(m.c.Dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", stateFile, err)
	}
	var file checkpoint
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("reading %s: %w", stateFile, err)
	}
	if crc32.ChecksumIEEE([]byte(file.Data)) != file.Checksum {
		return fmt.Errorf("reading %s: %w", stateFile, checksum.ErrCorrupt)
	}
	var d checkpointData
	if err := json.Unmarshal([]byte(file.Data), &d); err != nil {
		return fmt.Errorf("reading %s: %w", stateFile, err)
	}
	for _, c := range d.ClaimInfoStateList {
		m.know(key{Namespace: c.Namespace, Name: c.ClaimName}, &claimInfo{claimState: c})
	}
	return nil
}
