// Package unavailable stands for the kinds of volumes that a node has a plugin
// for, but not what that needs: gitRepo, which upstream has disabled. They fail
// as upstream's do then.
package unavailable

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// Plugin is a plugin whose volumes can't be set up.
type Plugin struct {
	host *volume.Host
	*kind
}

// kind is what such plugins differ in.
type kind struct {
	name  string
	is    func(*v1.Volume) bool
	setUp func(*v1.Volume) error
}

var gitRepo = kind{"kubernetes.io/git-repo", func(v *v1.Volume) bool { return v.GitRepo != nil }, func(*v1.Volume) error {
	return errors.New("git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`")
}}

// NewGitRepo returns the plugin of gitRepo volumes, disabled.
func NewGitRepo(host *volume.Host) *Plugin { return &Plugin{host, &gitRepo} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return p.name }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return p.is(v) }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, p.name, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return false }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(_ context.Context, r *volume.Request) error { return p.setUp(r.Volume) }

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, uid types.UID, name string) error {
	return p.host.FS.RemoveAll(p.host.VolumeDir(uid, p.name, name))
}
