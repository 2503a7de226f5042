package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The names of the checkpoint files in the kubelet's root directory.
const (
	AllocatedFile = "allocated_pods_state"
	ActuatedFile  = "actuated_pods_state"
)

// ErrCorrupt is the error of a checkpoint whose checksum is not that of its
// data.
var ErrCorrupt = errors.New("checkpoint is corrupted")

// checkpoint is the content of a file.
type checkpoint struct {
	// Data is the JSON of checkpointData.
	Data     string `json:"data"`
	Checksum uint64 `json:"checksum"`
}

type checkpointData struct {
	Entries map[types.UID]podEntry `json:"entries,omitempty"`
}

type podEntry struct {
	ContainerResources map[string]v1.ResourceRequirements
	PodLevelResources  *v1.ResourceRequirements `json:",omitempty"`
}

// Encode returns the content of a checkpoint file (upstream
// state/checkpoint.go); what is the same gives the same bytes.
func Encode(all map[types.UID]Resources) ([]byte, error) {
	d := checkpointData{Entries: make(map[types.UID]podEntry, len(all))}
	for uid, r := range all { //drydock:unordered fills a map
		d.Entries[uid] = podEntry{ContainerResources: r.Containers, PodLevelResources: r.Pod}
	}
	data, err := json.Marshal(d) // map keys are sorted
	if err != nil {
		return nil, fmt.Errorf("encoding a checkpoint: %w", err)
	}
	return json.Marshal(checkpoint{Data: string(data), Checksum: checksum(string(data))})
}

// Decode reads a checkpoint file. The error is ErrCorrupt, or that of JSON.
func Decode(file []byte) (map[types.UID]Resources, error) {
	var c checkpoint
	if err := json.Unmarshal(file, &c); err != nil {
		return nil, fmt.Errorf("failed to unmarshal checkpoint: %w", err)
	}
	if c.Checksum != checksum(c.Data) {
		return nil, ErrCorrupt
	}
	var d checkpointData
	if err := json.Unmarshal([]byte(c.Data), &d); err != nil {
		return nil, fmt.Errorf("failed to unmarshal checkpoint data: %w", err)
	}
	out := make(map[types.UID]Resources, len(d.Entries))
	for uid, e := range d.Entries { //drydock:unordered fills a map
		out[uid] = Resources{Containers: e.ContainerResources, Pod: e.PodLevelResources}
	}
	return out, nil
}

// checksum is what upstream's checkpointmanager/checksum makes of a string.
func checksum(data string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("(string)"))
	_, _ = h.Write([]byte(data))
	return uint64(h.Sum32())
}
