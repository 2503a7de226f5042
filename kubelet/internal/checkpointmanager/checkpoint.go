// Package checkpointmanager reads and writes files in which the kubelet keeps
// what it must still know after a restart. It mirrors upstream's
// pkg/kubelet/checkpointmanager.
package checkpointmanager

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// FS is where checkpoints are kept.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// Read fills in a checkpoint, whose own checksum is at sum and 0 afterwards. The
// error wraps fs.ErrNotExist if there is no such file, and is checksum.ErrCorrupt
// if the checksum is another.
func Read(files FS, file string, checkpoint any, sum *checksum.Checksum) error {
	data, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, checkpoint); err != nil {
		return err
	}
	want := *sum
	// One without a checksum is believed (VerifyChecksum of cpumanager/state and memorymanager/state).
	if *sum = 0; want != 0 && want != checksum.New(checkpoint) {
		return checksum.ErrCorrupt
	}
	return nil
}

// Write writes a checkpoint, whose own checksum is at sum: 0 before, set
// afterwards.
func Write(files FS, file string, checkpoint any, sum *checksum.Checksum) error {
	*sum = checksum.New(checkpoint)
	data, err := json.Marshal(checkpoint)
	if err == nil {
		err = filesystem.Replace(files, file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing checkpoint %s: %w", file, err)
	}
	return nil
}
