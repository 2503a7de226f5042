package kernel

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// screen keeps what a terminal shows.
type screen struct {
	text   []byte
	closed int
}

func (s *screen) Read(context.Context, []byte) (int, error) { return 0, io.EOF }
func (s *screen) Write(_ context.Context, b []byte) (int, error) {
	s.text = append(s.text, b...)
	return len(b), nil
}
func (s *screen) Close() error { s.closed++; return nil }
func (s *screen) Dup() File    { return s }

func TestTTY(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		read        []string // by reads of 64 bytes; "" is an end of input
		shown       string
	}{
		{"a line", "ls\r", []string{"ls\n"}, "ls\r\n"},
		{"newline", "a\nb\n", []string{"a\n", "b\n"}, "a\r\nb\r\n"},
		{"half a line", "ls", nil, "ls"},
		{"erase", "lx\x7fs\x08\x7f\x7f\x7fq\r", []string{"q\n"}, "lx\b \bs\b \b\b \bq\r\n"},
		{"erase a wide character", "aé\x7fb\r", []string{"ab\n"}, "aé\b \bb\r\n"},
		{"kill", "rm\x15ls\r", []string{"ls\n"}, "rm\b \b\b \bls\r\n"},
		{"end of input", "\x04", []string{""}, ""},
		{"end amid a line", "ab\x04", []string{"ab"}, "ab"},
		{"interrupt", "ab\x03cd\r", []string{"cd\n"}, "ab^C\r\ncd\r\n"},
		{"control character", "\x01\t\r", []string{"\x01\t\n"}, "^A\t\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := loop.New(loop.Options{Name: "n"})
			defer l.Close()
			s := &screen{}
			tty := (&Machine{l: l}).NewTTY(s)
			slave, keys := tty.Slave(), tty.Keyboard()
			done := false
			l.Root().Go("test", func(ctx context.Context) {
				if _, err := keys.Write(ctx, []byte(c.typed)); err != nil {
					t.Error(err)
				}
				b := make([]byte, 64)
				for _, want := range c.read {
					n, err := slave.Read(ctx, b)
					if got := string(b[:n]); got != want || (want == "") != (err == io.EOF) {
						t.Errorf("read %q, %v; want %q", got, err, want)
					}
				}
				if string(s.text) != c.shown {
					t.Errorf("shown is %q, want %q", s.text, c.shown)
				}
				_ = keys.Close()
				n, err := slave.Read(ctx, b)
				if want := map[bool]string{true: "ls"}[c.name == "half a line"]; string(b[:n]) != want {
					t.Errorf("after hanging up: %q, %v; want %q", b[:n], err, want)
				}
				if n, err := slave.Read(ctx, b); n != 0 || err != io.EOF {
					t.Errorf("in the end: %q, %v", b[:n], err)
				}
				other := slave.Dup()
				_ = slave.Close()
				if s.closed != 0 {
					t.Error("closed while somebody has it open")
				}
				_ = other.Close()
				if s.closed != 1 {
					t.Errorf("closed %d times", s.closed)
				}
				if _, err := keys.Write(ctx, []byte("x")); !errors.Is(err, linux.EPIPE) {
					t.Errorf("typing at nobody's terminal: %v", err)
				}
				done = true
			})
			if err := l.RunUntil(l.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if !done {
				t.Error("a read waits")
			}
		})
	}
}
