// Package userns gives pods user namespaces of their own: to each a range of the
// node's IDs that no other pod has. It mirrors upstream's pkg/kubelet/userns.
package userns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// DefaultIDsPerPod is how many IDs a pod has unless configured.
const DefaultIDsPerPod = 65536

// maxIDs is how many IDs there are.
const maxIDs = 1 << 32

// FS is what is needed of the node's files.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	ReadDir(name string) ([]fs.DirEntry, error)
}

// Options are what a Manager is made of.
type Options struct {
	FS FS
	// PodsDir is where pods have their directories.
	PodsDir string
	// IDsPerPod is userNamespaces.idsPerPod; 0 means DefaultIDsPerPod.
	IDsPerPod int64
}

// Manager hands out ranges of IDs. A pod's range is in the file userns of its
// directory too, which a new kubelet reads.
type Manager struct {
	o      Options
	byPod  map[types.UID]uint32 // its first ID
	owner  map[uint32]types.UID
	loaded bool
}

// New returns a Manager without pods.
func New(o Options) *Manager {
	o.IDsPerPod = cmp.Or(o.IDsPerPod, DefaultIDsPerPod)
	return &Manager{o: o}
}

// note keeps that a pod has the range that begins with an ID.
func (m *Manager) note(uid types.UID, first uint32) {
	if m.byPod == nil { // most nodes have no such pods
		m.byPod, m.owner = map[types.UID]uint32{}, map[uint32]types.UID{}
	}
	m.byPod[uid], m.owner[first] = first, uid
}

// mapping is how a pod's file has its IDs.
type mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

type namespace struct {
	UIDMappings []mapping `json:"uidMappings"`
	GIDMappings []mapping `json:"gidMappings"`
}

func (m *Manager) file(uid types.UID) string { return m.o.PodsDir + "/" + string(uid) + "/userns" }

// GetOrCreateUserNamespaceMappings returns the pod's namespace; a pod that has
// none gets the lowest free range. The first range of all is the host's.
func (m *Manager) GetOrCreateUserNamespaceMappings(uid types.UID) (*runtimeapi.UserNamespace, error) {
	m.load()
	first, ok := m.byPod[uid]
	if !ok {
		var err error
		if first, err = m.allocate(uid); err != nil {
			return nil, err
		}
	}
	ids := []*runtimeapi.IDMapping{{HostId: first, ContainerId: 0, Length: uint32(m.o.IDsPerPod)}}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}, nil
}

func (m *Manager) allocate(uid types.UID) (uint32, error) {
	for first := m.o.IDsPerPod; first+m.o.IDsPerPod <= maxIDs; first += m.o.IDsPerPod {
		id := uint32(first)
		if _, taken := m.owner[id]; taken {
			continue
		}
		ids := []mapping{{HostID: id, Length: uint32(m.o.IDsPerPod)}}
		data, err := json.Marshal(namespace{ids, ids})
		if err != nil {
			return 0, err
		}
		if err := filesystem.Replace(m.o.FS, m.file(uid), data, 0o600); err != nil {
			return 0, fmt.Errorf("write user namespace mappings of pod %s: %w", uid, err)
		}
		m.note(uid, id)
		return id, nil
	}
	return 0, errors.New("could not find an empty slot to allocate a user namespace")
}

// load reads the ranges that a former kubelet gave to pods.
func (m *Manager) load() {
	if m.loaded {
		return
	}
	m.loaded = true
	entries, err := m.o.FS.ReadDir(m.o.PodsDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		var ns namespace
		data, err := m.o.FS.ReadFile(m.file(uid))
		if err != nil || json.Unmarshal(data, &ns) != nil || len(ns.UIDMappings) != 1 {
			continue
		}
		m.note(uid, ns.UIDMappings[0].HostID)
	}
}

// Release takes a pod's range back; its directory goes with the pod.
func (m *Manager) Release(uid types.UID) {
	if first, ok := m.byPod[uid]; ok {
		delete(m.owner, first)
		delete(m.byPod, uid)
	}
}
