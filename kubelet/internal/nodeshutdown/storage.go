package nodeshutdown

import (
	"encoding/json"
	"time"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// StateFile is the name, in the kubelet's root directory, of the file with the
// times of the last shutdown.
const StateFile = "graceful_node_shutdown_state"

// state is the content of StateFile; a time that is not known yet is the zero
// time (storage.go).
type state struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// store keeps the times of the shutdown, for metrics of the next kubelet.
func (m *Manager) store(s state) {
	if m.o.StateFile == "" {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = filesystem.Replace(m.o.FS, m.o.StateFile, data, 0o644)
	}
	if err != nil {
		m.logf("Failed to store graceful shutdown state: %v", err)
	}
}
