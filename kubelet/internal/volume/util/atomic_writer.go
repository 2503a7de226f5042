package util

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// Names in a volume that belong to the writer.
const (
	dataDirName    = "..data"
	newDataDirName = "..data_tmp"
	timeFormat     = "..2006_01_02_15_04_05."
	maxFileName    = 255
	maxPath        = 4096
)

// FileProjection is what one file of a volume is to hold.
type FileProjection struct {
	Data []byte
	Mode int32
	// FSUser is who owns it; nil: root.
	FSUser *int64
}

// AtomicWriter writes the content of a volume such that a reader sees all of the
// old or all of the new: the files are in a directory named for the time of the
// writing, the symbolic link ..data leads there, and the names in the volume are
// symbolic links through ..data (pkg/volume/util/atomic_writer.go).
type AtomicWriter struct {
	host   *volume.Host
	dir    string
	object string
}

// NewAtomicWriter returns a writer for the volume of a pod in dir.
func NewAtomicWriter(host *volume.Host, dir string, uid types.UID, name string) *AtomicWriter {
	return &AtomicWriter{host, dir, string(uid) + "/" + name}
}

// Write makes payload, by relative path, the content of the volume. The same
// content as before writes nothing: modes are not compared. setPerms is called
// when the new files are written and nobody sees them yet.
// The order is what makes it safe: files, their owners, the link, the names
// that are new, the names that are gone, the old files. A kubelet that dies in
// between leaves either the old or the new, and the next writing cleans up.
func (w *AtomicWriter) Write(payload map[string]FileProjection, setPerms func() error) error {
	files, err := validatePayload(payload)
	if err != nil {
		return fmt.Errorf("invalid payload: %w", err)
	}
	old, err := w.host.FS.Readlink(path.Join(w.dir, dataDirName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var obsolete []string
	if old != "" {
		obsolete, err = w.obsolete(path.Join(w.dir, old), files)
		if err != nil {
			return err
		}
		if len(obsolete) == 0 && !w.differs(path.Join(w.dir, old), files) {
			return nil
		}
	}
	ts, err := w.newTimestampDir()
	if err != nil {
		return err
	}
	if err := w.writeFiles(path.Join(w.dir, ts), files); err != nil {
		return err
	}
	if setPerms != nil {
		if err := setPerms(); err != nil {
			return err
		}
	}
	if err := w.swap(ts); err != nil {
		return err
	}
	if err := w.createVisible(files); err != nil {
		return err
	}
	w.removeVisible(obsolete, files)
	if old != "" {
		return w.host.FS.RemoveAll(path.Join(w.dir, old))
	}
	return nil
}

// entry is a file of a payload.
// Entries are sorted by path, so that whether a file is still wanted is found
// by search.
type entry struct {
	path string
	FileProjection
}

// validatePayload returns the payload's files by clean path.
func validatePayload(payload map[string]FileProjection) ([]entry, error) {
	out := make([]entry, 0, len(payload))
	for p, f := range payload { //drydock:unordered sorted below
		out = append(out, entry{p, f})
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	for i := range out {
		if err := validatePath(out[i].path); err != nil {
			return nil, err
		}
		out[i].path = path.Clean(out[i].path)
	}
	return out, nil
}

// validatePath refuses what could lie outside the volume or among the writer's
// own names.
// The API refuses these, too; here static pods are meant.
func validatePath(p string) error {
	switch {
	case p == "":
		return errors.New("invalid path: must not be empty: " + strconv.Quote(p))
	case path.IsAbs(p):
		return fmt.Errorf("invalid path: must be relative path: %s", p)
	case len(p) > maxPath:
		return fmt.Errorf("invalid path: must be less than or equal to %d characters", maxPath)
	}
	items := strings.Split(p, "/")
	for _, item := range items {
		if item == ".." {
			return fmt.Errorf("invalid path: must not contain '..': %s", p)
		}
		if len(item) > maxFileName {
			return fmt.Errorf("invalid path: filenames must be less than or equal to %d characters", maxFileName)
		}
	}
	if strings.HasPrefix(items[0], "..") && len(items[0]) > 2 {
		return fmt.Errorf("invalid path: must not start with '..': %s", p)
	}
	return nil
}

// differs reports whether a file is missing or holds something else.
// It reads the files rather than remember a hash: a container with the right to
// may have changed them.
func (w *AtomicWriter) differs(dir string, files []entry) bool {
	for i := range files {
		data, err := w.host.FS.ReadFile(path.Join(dir, files[i].path))
		if err != nil || !bytes.Equal(data, files[i].Data) {
			return true
		}
	}
	return false
}

// obsolete lists the files in dir that the payload has no more, by relative
// path.
func (w *AtomicWriter) obsolete(dir string, files []entry) ([]string, error) {
	var out []string
	var walk func(rel string) error
	walk = func(rel string) error {
		entries, err := w.host.FS.ReadDir(path.Join(dir, rel))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			p := path.Join(rel, e.Name())
			if e.IsDir() {
				if err := walk(p); err != nil {
					return err
				}
				continue
			}
			if _, ok := slices.BinarySearchFunc(files, p, func(f entry, p string) int { return strings.Compare(f.path, p) }); !ok {
				out = append(out, p)
			}
		}
		return nil
	}
	return out, walk("")
}

// newTimestampDir makes the directory for the files.
// The name's end is drawn, as upstream's is random: two writings may share a
// second.
func (w *AtomicWriter) newTimestampDir() (string, error) {
	now := w.host.Now().UTC()
	for try := uint64(0); ; try++ {
		name := now.Format(timeFormat) + strconv.FormatUint(uint64(w.host.Random(w.object, uint64(now.UnixNano())+try)), 10)
		dir := path.Join(w.dir, name)
		err := w.host.FS.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		return name, err
	}
}

// writeFiles writes a new version of the content, which nobody sees before the
// link leads to it.
func (w *AtomicWriter) writeFiles(dir string, files []entry) error {
	for i := range files {
		f := &files[i]
		p := path.Join(dir, f.path)
		if err := w.host.FS.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(f.Mode) & fs.ModePerm
		if err := w.host.FS.WriteFile(p, f.Data, mode); err != nil {
			return err
		}
		if f.FSUser == nil {
			continue
		}
		if err := w.host.FS.Lchown(p, int(*f.FSUser), -1); err != nil {
			return err
		}
	}
	return nil
}

// swap makes ..data lead to the new directory, at one stroke.
// A rename replaces the link; a link can't be changed.
func (w *AtomicWriter) swap(ts string) error {
	tmp := path.Join(w.dir, newDataDirName)
	if err := w.host.FS.RemoveAll(tmp); err != nil { // of a writing that failed
		return err
	}
	if err := w.host.FS.Symlink(ts, tmp); err != nil {
		return errors.Join(err, w.host.FS.RemoveAll(path.Join(w.dir, ts)))
	}
	if err := w.host.FS.Rename(tmp, path.Join(w.dir, dataDirName)); err != nil {
		return errors.Join(err, w.host.FS.Remove(tmp), w.host.FS.RemoveAll(path.Join(w.dir, ts)))
	}
	return nil
}

// top is the first part of a path: links are made for these alone.
func top(p string) string {
	name, _, _ := strings.Cut(p, "/")
	return name
}

// createVisible makes the links that are missing.
// Links that are there lead through ..data, so they follow by themselves.
func (w *AtomicWriter) createVisible(files []entry) error {
	for i := range files {
		name := top(files[i].path)
		visible := path.Join(w.dir, name)
		if _, err := w.host.FS.Readlink(visible); err == nil {
			continue
		}
		if err := w.host.FS.Symlink(path.Join(dataDirName, name), visible); err != nil {
			return err
		}
	}
	return nil
}

// removeVisible removes the links that lead nowhere any more.
// A failure is only logged: the link leads nowhere, and the content is right.
func (w *AtomicWriter) removeVisible(obsolete []string, files []entry) {
	kept := map[string]bool{}
	for i := range files {
		kept[top(files[i].path)] = true
	}
	for _, p := range obsolete {
		name := top(p)
		if kept[name] {
			continue
		}
		kept[name] = true
		if err := w.host.FS.Remove(path.Join(w.dir, name)); err != nil {
			w.host.Logf("Error removing user visible path path=%s: %v", path.Join(w.dir, name), err)
		}
	}
}
