package config

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// FileOptions configure a file source.
type FileOptions struct {
	Group *loop.Group
	FS    filesystem.FS
	// Path is the folder of manifests, or one manifest (staticPodPath).
	Path string
	// Period is the time between full lists (fileCheckFrequency).
	Period time.Duration
	// Pods makes pods of manifests.
	Pods StaticPods
	// Source is what is fed.
	Source *Source
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// Exact is implemented by file systems whose Watch tells of every change there
// is, so that a list without one finds nothing.
type Exact interface{ WatchesAll() }

// fileSource reads static pods from files (pkg/kubelet/config/file.go): a full
// list at once and every period, and after each change (upstream: inotify)
// what changed. The two differ in one thing: a file that can't be read or
// parsed any more keeps its pod after a change and loses it at the next list.
type fileSource struct {
	FileOptions
	entries []fileEntry // by path
	// pods are those stated, at most one of a namespace and name.
	pods   []*v1.Pod
	queued bool
	// same: a list would find what the last one found, without a complaint.
	same, complained bool
}

type fileEntry struct {
	path string
	data []byte
	pod  *v1.Pod // nil if the data gave none
}

// StartFile feeds a source from files until the group dies.
func StartFile(opts FileOptions) {
	f := &fileSource{FileOptions: opts}
	f.Path = strings.TrimSuffix(f.Path, "/")
	g := opts.Group
	_, exact := f.FS.(Exact)
	list := func() {
		if f.same {
			return
		}
		f.complained = false
		f.read(false)
		f.same = exact && !f.complained
	}
	g.After(0, list)
	g.Every("config/file", opts.Period, 0, list)
	stop := f.FS.Watch(f.Path, func() {
		f.same = false
		if f.queued || g.Dead() {
			return
		}
		// Not from inside the change: the writer may have more to write.
		f.queued = true
		g.After(0, func() { f.queued = false; f.read(true) })
	})
	g.OnKill(stop)
}

func (f *fileSource) log(format string, args ...any) {
	f.complained = true
	if f.Log != nil {
		f.Log(format, args...)
	}
}

// read reads everything: at the periodic list, or, with keep, after a change,
// when a file that gives no pod any more keeps its old one. Where the path is
// one file, an error leaves all as it was.
func (f *fileSource) read(keep bool) {
	info, err := f.FS.Stat(f.Path)
	switch {
	case err != nil:
		f.entries = nil
		f.Source.Set(nil)
	case info.IsDir():
		old := f.entries
		f.entries = f.readDir(keep)
		if keep {
			f.apply(old)
		} else {
			f.list()
		}
	default:
		if e, ok := f.readFile(f.Path, keep); ok && e.pod != nil {
			f.entries = []fileEntry{e}
			f.list()
		}
	}
}

// readDir reads the regular files of the folder, in the order of their names.
func (f *fileSource) readDir(keep bool) []fileEntry {
	dir, err := f.FS.ReadDir(f.Path)
	if err != nil {
		f.log("Could not read static pod path %s: %v", f.Path, err)
		return f.entries
	}
	var out []fileEntry
	for _, d := range dir {
		name := path.Join(f.Path, d.Name())
		if strings.HasPrefix(d.Name(), ".") || d.Type() != 0 && !f.regular(name) {
			continue
		}
		if e, ok := f.readFile(name, keep); ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b fileEntry) int { return strings.Compare(a.path, b.path) })
	return out
}

// regular reports whether a name that is not a plain file leads to one, as a
// symbolic link does, and says so if not.
func (f *fileSource) regular(name string) bool {
	info, err := f.FS.Stat(name)
	switch {
	case err != nil:
		f.log("Could not get metadata of manifest %s: %v", name, err)
	case info.IsDir():
		f.log("Not recursing into manifest path %s", name)
	case !info.Mode().IsRegular():
		f.log("Manifest path %s is not a regular file: %v", name, info.Mode())
	default:
		return true
	}
	return false
}

// readFile makes an entry of one file. Bytes that were read before are not
// decoded again. With keep, a file that gives no pod any more keeps its old
// one.
func (f *fileSource) readFile(name string, keep bool) (fileEntry, bool) {
	var old *fileEntry
	for i := range f.entries {
		if f.entries[i].path == name {
			old = &f.entries[i]
		}
	}
	data, err := f.FS.ReadFile(name)
	if err == nil && old != nil && bytes.Equal(data, old.data) {
		return *old, true
	}
	var pod *v1.Pod
	if err == nil {
		pod, err = f.Pods.Decode(data, name)
	}
	if err != nil {
		f.log("Could not process manifest file %s: %v", name, err)
		if keep && old != nil {
			return *old, true // its data stays, so that the next list looks again
		}
		return fileEntry{path: name, data: data}, data != nil
	}
	return fileEntry{path: name, data: data, pod: pod}, true
}

// list states the pods of all files; of two with the same namespace and name
// the one of the later path counts. That there are none is stated without
// forgetting which there were, as upstream does.
func (f *fileSource) list() {
	var pods []*v1.Pod
	for _, e := range f.entries {
		if e.pod != nil {
			pods = put(pods, e.pod)
		}
	}
	if pods == nil {
		f.Source.Set(nil)
		return
	}
	f.pods = pods
	f.send()
}

// apply states what changed since the entries were old, file by file: the pod
// of a file that went is gone, even where another file has one of the same
// namespace and name, until the next list; that of a changed file replaces such
// a one.
func (f *fileSource) apply(old []fileEntry) {
	changed := false
	for _, o := range old {
		if o.pod == nil || slices.ContainsFunc(f.entries, func(e fileEntry) bool { return e.path == o.path }) {
			continue
		}
		n := len(f.pods)
		f.pods = slices.DeleteFunc(slices.Clone(f.pods), func(p *v1.Pod) bool { return sameName(p, o.pod) })
		changed = changed || len(f.pods) < n
	}
	for _, e := range f.entries {
		before := slices.IndexFunc(old, func(o fileEntry) bool { return o.path == e.path })
		if e.pod != nil && (before < 0 || old[before].pod != e.pod) {
			f.pods, changed = put(slices.Clone(f.pods), e.pod), true
		}
	}
	if changed {
		f.send()
	}
}

// put adds a pod, in place of one of its name.
func put(pods []*v1.Pod, pod *v1.Pod) []*v1.Pod {
	if i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return sameName(p, pod) }); i >= 0 {
		pods[i] = pod
		return pods
	}
	return append(pods, pod)
}

func sameName(a, b *v1.Pod) bool { return a.Name == b.Name && a.Namespace == b.Namespace }

func (f *fileSource) send() {
	pods := slices.Clone(f.pods)
	SortPods(pods)
	f.Source.Set(pods)
}
