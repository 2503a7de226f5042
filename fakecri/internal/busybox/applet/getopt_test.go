package applet

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string
	}{
		{"1", "1s true"}, {"0.25", "250ms true"}, {"2m", "2m0s true"}, {"1.5h", "1h30m0s true"}, {"1d", "24h0m0s true"}, {"3s", "3s true"},
		{"infinity", "1752000h0m0s true"}, {"", "0s false"}, {"x", "0s false"}, {"1x", "0s false"}, {"-1", "0s false"}, {"1.2.3", "0s false"}, {"99999999999", "1752000h0m0s true"},
	} {
		d, ok := Duration(c.in)
		if got := fmt.Sprint(d, ok); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, c := range []struct {
		spec string
		old  uint32
		want string
	}{
		{"755", 0, "755"}, {"4755", 0, "4755"}, {"u+x", 0o644, "744"}, {"+x", 0o644, "755"}, {"a-w", 0o666, "444"}, {"go=", 0o777, "700"}, {"u=rwX,g=u", 0o600, "660"},
		{"g+s", 0o755, "2755"}, {"+t", 0o777, "1777"}, {"u=g", 0o640, "440"}, {"X", 0, "bad"}, {"8", 0, "bad"}, {"u+z", 0, "bad"}, {"", 0o640, "640"}, {"a+r-w", 0o222, "444"},
	} {
		m, ok := ParseMode(c.spec, FileMode(c.old), 0o022)
		got := "bad"
		if ok {
			got = fmt.Sprintf("%o", OctalMode(m))
		}
		if got != c.want {
			t.Errorf("%s on %o: %s, want %s", c.spec, c.old, got, c.want)
		}
	}
}

func TestHuman(t *testing.T) {
	for n, want := range map[int64]string{500: "500", 1023: "1023", 1024: "1.0K", 1500: "1.5K", 1048575: "1024.0K", 1048576: "1.0M", 99999999: "95.4M"} {
		if got := HumanSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// FuzzGetopt checks that options are taken apart without loss: every argument
// is an option, a value or an operand, or there is a complaint.
func FuzzGetopt(f *testing.F) {
	f.Add("-ab\x00--long=x\x00rest\x00--\x00-z", "ab:c::")
	f.Add("-c5\x00-b", "+ab:c::")
	f.Fuzz(func(t *testing.T, args, spec string) {
		c := &Call{Args: strings.Split(args, "\x00"), Name: "x", Out: &Writer{}}
		complained := false
		func() {
			defer func() {
				switch r := recover().(type) {
				case nil:
				case exitStatus:
					complained = true
				default:
					if r != nil {
						complained = true // a call without a process can't write
						if err, ok := r.(error); !ok || !strings.Contains(err.Error(), "nil pointer") {
							panic(r)
						}
					}
				}
			}()
			o := c.Getopt(spec, "long=l:", "flag=f")
			if len(o.Args) > len(c.Args) {
				t.Errorf("%q: more operands than arguments: %q", args, o.Args)
			}
		}()
		_ = complained
	})
}

// FuzzFormats runs the parsers of small languages on arbitrary text.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"1.5h", "u+x,g=rwX", "2020-02-30 10:00", "202001020304.05", `\x41\0101\c`, "1.5"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		if len(s) > 64 {
			return
		}
		Duration(s)
		ParseMode(s, 0o644, 0o022)
		ParseDate(s, epochForTests)
		EchoEscapes(s)
		CompareVersions(s, "v1.10")
	})
}

var epochForTests = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
