package scenarios

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Position is a place in a file. Lines and columns count from 1; 0 means that
// there is none.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Range is a span from which a time is drawn, both ends included. It is
// written as one time, "2s", or as two, "2s..4s".
type Range struct{ Min, Max time.Duration }

// Time is a time after the start, or "end".
type Time struct {
	After time.Duration
	End   bool
}

// Nodes selects nodes by name or pattern (* and ?); it is written as a text or
// as a list of texts. Load refuses one that selects no node, and fills in the
// only node where one may be left out. Scenario.SelectNodes resolves it.
type Nodes []string

// Signal is a signal's number, written as a name or as a number.
type Signal int

// JSON is any value, as JSON.
type JSON []byte

// StaticPods are manifest files, in the order in which they are written.
type StaticPods []StaticPod

// StaticPod is a manifest file of a static pod.
type StaticPod struct {
	File     string
	Manifest Manifest
}

// Manifest is Kubernetes objects that are written in place: one or a list. For
// a static pod it may also be a text, which has no Objects.
type Manifest struct {
	// Objects are decoded strictly. They are shared and must not be changed.
	Objects []Object
	// Content is the manifest as a file would have it, in YAML.
	Content []byte
}

// Object is a Kubernetes object and where it is written.
type Object struct {
	runtime.Object
	Pos Position
}
