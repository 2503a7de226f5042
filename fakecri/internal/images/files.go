package images

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// ImageUsers returns the users of an image, nil if its files are not known.
func (r *Store) ImageUsers(src *Source) *users {
	if src.users == nil && src.FilesKnown() {
		src.users = new(UsersOf(memfs.NewFrom(memfs.Options{Loop: r.l}, r.TreeOf(src))))
	}
	return src.users
}

// Plain reports whether a container of the image that names no command has the
// default behaviour.
func (src *Source) Plain() bool {
	return src.Known == nil && src.Commands == nil && len(src.Entrypoint) == 0 && len(src.Cmd) == 0
}

// Unknown reports whether nothing is known of the image: neither a scenario lists it nor is it a
// well-known one.
func (src *Source) Unknown() bool { return !src.Listed && src.Known == nil }

// States reports whether the image's stated commands have one, by name or path.
func (src *Source) States(command string) bool {
	return slices.ContainsFunc(src.Commands, func(c string) bool {
		return c == command || !path.IsAbs(c) && command == "/bin/"+c
	})
}

// Tree returns the name of the image's files.
func (src *Source) Tree() string {
	switch {
	case src.Commands != nil:
		return commandsTree(src.Commands, src.Bare)
	case src.Known != nil && src.Known.Tree != "":
		return src.Known.Tree
	}
	return treeDebian
}

// Runs reports whether an image whose files are not known can be taken to have a
// command that is interpreted.
func (t *Trees) Runs(command string) bool {
	if !t.Has(path.Base(command)) {
		return false
	}
	switch path.Dir(command) {
	case ".":
		return !strings.Contains(command, "/")
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin":
		return true
	}
	return false
}

// AllTrees returns the images' files.
func (r *Store) AllTrees() *Trees {
	if r.trees == nil {
		r.trees = newTrees(r.catalogue)
	}
	if r.trees.applets == nil {
		r.trees.prepare(r.l, r.opts.Images)
	}
	return r.trees
}

// CommandsOf returns what the programs of an image do: commands that it states
// and nobody knows exit 0.
func (r *Store) CommandsOf(src *Source) kernel.Commands {
	t := r.AllTrees()
	if src.commands != nil {
		return src.commands
	}
	if r.commands == nil {
		r.commands = t.commands(r.opts.NoElide)
	}
	src.commands = r.commands
	var all kernel.Commands
	for _, c := range src.Commands {
		name := path.Base(c)
		if t.Has(name) {
			continue
		}
		if all == nil {
			all = kernel.Commands{}
			maps.Copy(all, r.commands)
		}
		all[name] = statedCommand(name)
	}
	if all != nil {
		src.commands = all
	}
	return src.commands
}

// FilesKnown reports whether an image's files are more than a guess.
func (src *Source) FilesKnown() bool {
	return src.Commands != nil || src.Known != nil && src.Known.Tree != ""
}

// statedCommand is a command that an image states and nobody knows.
func statedCommand(name string) kernel.Command {
	return func(_ context.Context, p *kernel.Process) int {
		p.Container().Warn("the command " + name + " of the image is not interpreted; it exits 0")
		return 0
	}
}
