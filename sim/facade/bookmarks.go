package facade

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Bookmarks are sent each bookmarkPeriod of the cluster's time, and lastBookmark before a
// watch ends, so that who begins anew has hardly anything to catch up with
// (k8s.io/apiserver, pkg/storage/cacher/cache_watcher.go).
const (
	bookmarkPeriod = time.Minute
	lastBookmark   = 2 * time.Second
)

// bookmark says that a watcher has been told of everything up to a version.
func (o *watcher) bookmark(version uint64) told {
	obj := o.s.row.New()
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	return told{typ: watch.Bookmark, obj: obj}
}

// markLater has a watcher sent bookmarks. timeout is the watch's own, in seconds.
func (w *watches) markLater(one *watcher, timeout *int64) {
	now := w.o.API.Loop().UnixNano()
	if timeout != nil {
		one.lastMark = now + int64(time.Duration(*timeout)*time.Second-lastBookmark)
	}
	one.nextMark = one.dueAfter(now)
	w.marked = append(w.marked, one)
	w.setMark()
}

// dueAfter is when the next bookmark is due.
func (o *watcher) dueAfter(now int64) int64 {
	next := now + int64(bookmarkPeriod)
	if o.lastMark > now {
		next = min(next, o.lastMark)
	}
	return next
}

// sendBookmarks sends those that are due.
func (w *watches) sendBookmarks() {
	now, version := w.o.API.Loop().UnixNano(), w.o.API.Store().Version()
	w.marked = slices.DeleteFunc(w.marked, (*watcher).ended)
	for _, one := range w.marked {
		if one.nextMark <= now {
			one.send(one.bookmark(max(version, one.after)))
			one.nextMark = one.dueAfter(now)
		}
	}
	w.setMark()
}

// setMark sets the timer to the bookmark that is due first.
func (w *watches) setMark() {
	if len(w.marked) == 0 {
		w.mark.Stop()
		return
	}
	first := slices.MinFunc(w.marked, func(a, b *watcher) int { return int(a.nextMark - b.nextMark) })
	w.mark.Reset(max(0, time.Duration(first.nextMark-w.o.API.Loop().UnixNano())))
}
