package actor

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What a command line means.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		line string
		args []string
		set  func(o *Options)
	}{
		{"/actor run", nil, func(*Options) {}},
		{"actor run --for=1m30s --exit=3,0 --count=/n", nil, func(o *Options) {
			o.For, o.Limited, o.Exit, o.Count = 90*time.Second, true, []int{3, 0}, "/n"
		}},
		{"/actor run --ignore=TERM,SIGINT,10 --stop-after=2s --stop-exit=255", nil, func(o *Options) {
			o.Ignore, o.StopAfter, o.StopExit = []int{15, 2, 10}, 2*time.Second, 255
		}},
		{"/actor run --http=80 --http=81 --grpc=82 --grpc-service=a --tcp=83", nil, func(o *Options) {
			o.HTTP, o.GRPC, o.Services, o.TCP = []int{80, 81}, []int{82}, []string{"a"}, []int{83}
		}},
		{"/actor run --write=/f=a=b --append=/g= --memory=64Mi --cpu=1.5", nil, func(o *Options) {
			o.Write, o.Append, o.Memory, o.CPU = [][2]string{{"/f", "a=b"}}, [][2]string{{"/g", ""}}, 64<<20, 1500
		}},
		{"/pause", nil, func(*Options) {}},
		{"/actor http --timeout=1s http://[::1]:80/x --header=A:b", []string{"http://[::1]:80/x"}, func(o *Options) {
			o.Timeout, o.Headers = time.Second, [][2]string{{"A", "b"}}
		}},
		{"/actor exit 3 -x - --stderr", []string{"3", "-x", "-"}, func(o *Options) { o.Stderr = true }},
		{"/actor exit -- 3 --stderr --", []string{"3", "--stderr", "--"}, func(*Options) {}},
		{"/actor chain run --for=1s -- exit 2", []string{"run", "--for=1s", "--", "exit", "2"}, func(*Options) {}},
	} {
		c, err := Parse(strings.Fields(tc.line))
		if err != nil {
			t.Errorf("%s: %v", tc.line, err)
			continue
		}
		var want Options
		want.defaults()
		tc.set(&want)
		if !reflect.DeepEqual(c.Options, want) || len(c.Args)+len(tc.args) > 0 && !reflect.DeepEqual(c.Args, tc.args) {
			t.Errorf("%s: %q %+v\nwant %q %+v", tc.line, c.Args, c.Options, tc.args, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "12": 12, "1k": 1000, "64Mi": 64 << 20, "1Gi": 1 << 30, "2G": 2e9, "": -1, "Mi": -1, "-1": -1, "1.5Mi": -1, "1Ti": -1, "99999999Gi": -1} {
		n, err := ParseSize(s)
		if want < 0 && err == nil || want >= 0 && (err != nil || n != want) {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", s, n, err, want)
		}
	}
}

// Every option belongs to a command, and every option that a command names is
// there.
func TestOptionsAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, c := range commands() {
		for _, name := range c.options {
			used[name] = true
			if findOption(name) == nil {
				t.Errorf("%s names --%s, which is none", c.name, name)
			}
		}
	}
	for _, o := range options {
		if !used[o.name] {
			t.Errorf("--%s belongs to no command", o.name)
		}
	}
}

// The images name users, programs and files that they have, and no name twice.
func TestImages(t *testing.T) {
	seen := map[string]bool{}
	for _, im := range Images() {
		for _, tag := range append([]string{im.Tag}, im.Aliases...) {
			if name := im.Repository + ":" + tag; seen[name] {
				t.Errorf("%s is there twice", name)
			} else {
				seen[name] = true
			}
			if got := FindImage(im.Repository, tag); got == nil || got.Tag != im.Tag {
				t.Errorf("FindImage(%s, %s) = %v", im.Repository, tag, got)
			}
		}
		if im.StopSignal != "" && SignalNumber(im.StopSignal) == 0 {
			t.Errorf("%s: the program doesn't know %s", im.Name(), im.StopSignal)
		}
		if argv := append(append([]string(nil), im.Entrypoint...), im.Cmd...); len(argv) > 0 {
			if _, err := Parse(argv); err != nil {
				t.Errorf("%s: %q: %v", im.Name(), argv, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{"actor run --for=1s --exit=1,2", "pause", "actor chain echo a -- exit 3", "actor http http://a:1/b", "actor kill TERM 1", "actor chmod 0644 x", "actor --"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := Parse(strings.Split(line, " "))
		var ue *UsageError
		if err != nil && (!errors.As(err, &ue) || strings.TrimSpace(err.Error()) == "") {
			t.Fatalf("%q: %v", line, err)
		}
		if err == nil && c.command == nil {
			t.Fatalf("%q: no command", line)
		}
	})
}

func FuzzHealthService(f *testing.F) {
	f.Add([]byte{10, 1, 'a'})
	f.Add([]byte{10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 'a'})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = healthService(b)
		_, _ = healthStatus(map[string]string{"grpc-status": "0"}, b)
	})
}
