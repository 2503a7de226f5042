package stats

import (
	"context"
	"errors"
	"fmt"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Filesystems say how images and containers lie on the machine's disks.
type Filesystems struct {
	Root, Image, Container *Filesystem
	// Dedicated: images are not on the root's file system.
	Dedicated bool
	// Split: and writable layers are not where images are.
	Split bool
}

// Filesystems finds the file systems of the kubelet's directory, of the images
// and of the writable layers (upstream HasDedicatedImageFs and
// ContainerFsStats). Only a runtime with labelled file systems can have the
// last two apart.
func (p *Provider) Filesystems(ctx context.Context) (Filesystems, error) {
	if p.o.Machine == nil {
		return Filesystems{}, errNoMachine
	}
	var out Filesystems
	info, err := p.o.Images.ImageFsInfo(ctx)
	if err != nil {
		return out, err
	}
	if out.Root, err = p.o.Machine.Filesystem(ctx, p.o.RootDir); err != nil {
		return out, fmt.Errorf("failed to get rootFs info: %w", err)
	}
	for _, fs := range info.GetImageFilesystems() {
		if out.Image, err = p.o.Machine.Filesystem(ctx, fs.GetFsId().GetMountpoint()); err == nil {
			out.Image.Time = at(fs.Timestamp)
			out.Image.UsedBytes, out.Image.InodesUsed = number(fs.UsedBytes), number(fs.InodesUsed)
			break
		}
	}
	if out.Image == nil {
		return out, errors.New("no image filesystem found")
	}
	out.Container = out.Image
	out.Dedicated = out.Image.Device != out.Root.Device
	if list := info.GetContainerFilesystems(); p.o.Labelled && len(list) > 0 {
		fs := list[0]
		c, err := p.o.Machine.Filesystem(ctx, fs.GetFsId().GetMountpoint())
		if err != nil {
			return out, fmt.Errorf("failed to get the file system of containers: %w", err)
		}
		if c.Device != out.Image.Device {
			c.Time = at(fs.Timestamp)
			c.UsedBytes, c.InodesUsed = number(fs.UsedBytes), number(fs.InodesUsed)
			out.Container, out.Dedicated = c, true
			out.Split = true
		}
	}
	return out, nil
}

// node fills in what the node uses as a whole.
func (p *Provider) node(ctx context.Context, s *statsapi.NodeStats) error {
	m := p.o.Machine
	var err error
	if s.Memory, err = m.Memory(ctx); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	if s.CPU, err = m.CPU(ctx); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	if s.Swap, err = m.Swap(ctx); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	if s.StartTime, err = m.Created(ctx, "/"); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	if s.IO, err = m.IO(ctx); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	if s.Network, err = m.Network(ctx); err != nil {
		return fmt.Errorf("failed to get root cgroup stats: %w", err)
	}
	s.IO = p.pressures(s.CPU, s.Memory, s.IO)
	if p.o.PodsCgroup != "" {
		// What can't be read is left out, as upstream does.
		if g, err := m.Cgroup(ctx, p.o.PodsCgroup); err == nil && g != nil {
			created, _ := m.Created(ctx, p.o.PodsCgroup)
			s.SystemContainers = append(s.SystemContainers, statsapi.ContainerStats{
				Name: statsapi.SystemContainerPods, StartTime: created, CPU: g.CPU, Memory: g.Memory, Swap: p.swapped(g.Swap), IO: p.pressures(g.CPU, g.Memory, g.IO),
			})
		}
	}
	fs, err := p.Filesystems(ctx)
	if err != nil {
		return fmt.Errorf("failed to get imageFs stats: %w", err)
	}
	s.Fs = &fs.Root.FsStats
	s.Runtime = &statsapi.RuntimeStats{ImageFs: &fs.Image.FsStats, ContainerFs: &fs.Container.FsStats}
	if s.Rlimit, err = m.PIDs(ctx); err != nil {
		return fmt.Errorf("failed to get rlimit stats: %w", err)
	}
	return nil
}
