package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/probe"
)

type exitError int

func (e exitError) Error() string   { return fmt.Sprint("exit ", int(e)) }
func (e exitError) ExitStatus() int { return int(e) }

type runner struct {
	out string
	err error
}

func (r runner) RunInContainer(context.Context, string, []string, time.Duration) ([]byte, error) {
	return []byte(r.out), r.err
}

func TestProbe(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		r      runner
		want   probe.Result
		output string
		err    error
	}{
		{"ok", runner{"fine", nil}, probe.Success, "fine", nil},
		{"exit 0 as an error", runner{"fine", exitError(0)}, probe.Success, "fine", nil},
		{"exit 1", runner{"no", exitError(1)}, probe.Failure, "no", nil},
		{"wrapped exit", runner{"no", fmt.Errorf("x: %w", exitError(7))}, probe.Failure, "no", nil},
		{"long output", runner{strings.Repeat("y", 20000), exitError(1)}, probe.Failure, strings.Repeat("y", 10240), nil},
		{"timeout", runner{"lost", &TimeoutError{Err: errors.New(`"sh -c sleep 5"`), Timeout: time.Second}}, probe.Failure, `command timed out: "sh -c sleep 5" timed out after 1s`, nil},
		{"error", runner{"lost", boom}, probe.Unknown, "", boom},
	} {
		got, output, err := Probe(context.Background(), tc.r, "c", nil, time.Second)
		if got != tc.want || output != tc.output || !errors.Is(err, tc.err) {
			t.Errorf("%s: %s %.60q %v", tc.name, got, output, err)
		}
	}
}

func TestCommand(t *testing.T) {
	c := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}, {Name: "F", ValueFrom: &v1.EnvVarSource{}}}}
	in := []string{"sh", "$(A) $(F). $(NONE) $$(A)", "plain"}
	if got, want := Command(in, c), []string{"sh", "2 . $(NONE) $(A)", "plain"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if in[1] != "$(A) $(F). $(NONE) $$(A)" {
		t.Error("the spec was written to")
	}
	if plain := []string{"a", "b"}; &Command(plain, c)[0] != &plain[0] {
		t.Error("a plain command is copied")
	}
}
