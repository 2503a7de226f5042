// Package checkpointtest has what tests of checkpoints share.
package checkpointtest

import "io/fs"

// Files are files by their paths, in memory.
type Files map[string][]byte

// ReadFile returns a file's content, or fs.ErrNotExist.
func (f Files) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// WriteFile puts content in the place of what a file had.
func (f Files) WriteFile(name string, data []byte, _ fs.FileMode) error {
	f[name] = data
	return nil
}
