// Package paths compares clean absolute paths. Nothing is read: links are not followed.
package paths

import (
	"path"
	"strings"
)

// Below reports whether p is dir, or below it.
func Below(p, dir string) bool {
	return dir == "/" || strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// Related reports whether one of two paths is the other, or below it.
func Related(a, b string) bool { return Below(a, b) || Below(b, a) }

// Around returns the closest path that has both paths at or below it; "" is no path, and has the
// other one for an answer.
func Around(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	for !Below(b, a) {
		a = path.Dir(a)
	}
	return a
}
