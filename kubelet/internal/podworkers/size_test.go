package podworkers

import (
	"testing"
	"unsafe"

	v1 "k8s.io/api/core/v1"
)

// The record of a pod is kept small: there are 150,000 of them in one process.
func TestRecordSize(t *testing.T) {
	if n := unsafe.Sizeof(record{}); n > 256 { // a size class
		t.Errorf("a record takes %d bytes", n)
	}
	t.Logf("record %d bytes, v1.Pod %d bytes", unsafe.Sizeof(record{}), unsafe.Sizeof(v1.Pod{}))
}
