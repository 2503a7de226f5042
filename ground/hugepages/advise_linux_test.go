package hugepages

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const maps = `00400000-00a00000 r-xp 00000000 fe:00 1234 /usr/bin/drydock
00e00000-00e20000 rw-p 00000000 00:00 0
c000000000-c004000000 rw-p 00000000 00:00 0
c004000000-c008000000 ---p 00000000 00:00 0
c008000000-c00c000000 rw-p 00000000 00:00 0
7f00c0000000-7f00c4000000 rw-p 00000000 00:00 0
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
`
	got, err := parse(strings.NewReader(maps), 0xc000012345)
	want := []area{{0xc000000000, 0xc004000000}, {0xc008000000, 0xc00c000000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	if _, err := parse(strings.NewReader("zz-1 rw-p 0 0 0\n"), 0); err == nil {
		t.Error("a malformed mapping is taken")
	}
}

// The kernel notes on each mapping what it was asked for (VmFlags hg).
func TestAdvise(t *testing.T) {
	stop := Keep(time.Millisecond)
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	n, err := Advise(0)
	stop()
	if err != nil {
		t.Skip("no huge pages here: ", err)
	}
	if n < int64(len(ballast)) {
		t.Errorf("asked for %d bytes, the heap holds %d", n, len(ballast))
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	if !strings.Contains(string(smaps), " hg") {
		t.Error("no mapping is noted as asked for")
	}
	if ballast[0] != 1 {
		t.Error("the heap has changed")
	}
}
