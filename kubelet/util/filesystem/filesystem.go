// Package filesystem declares the files of a node as the kubelet sees them:
// static pod manifests, pod directories, logs, checkpoints. In a simulation
// they are in memory (sim/memfs), on a machine they are the OS's. It answers
// to upstream's pkg/util/filesystem.
package filesystem

import "io/fs"

// FS is a file system with absolute, slash-separated paths. Its calls take no
// time and never wait. Errors match fs.ErrNotExist, fs.ErrExist and the like
// with errors.Is.
type FS interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile creates or replaces a file; its directory must exist.
	WriteFile(name string, data []byte, perm fs.FileMode) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// MkdirAll makes a directory and its parents; one that exists is no error.
	MkdirAll(path string, perm fs.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a path and what is below it; nothing there is no error.
	RemoveAll(path string) error
	// Watch has fn called after each change at or below path, also when path
	// does not exist yet, until stop is called. fn must not wait.
	Watch(path string, fn func()) (stop func())
}
