package determinism_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/drydock-sim/drydock/cmd/drydock-lint/determinism"
)

// Each package of testdata is a rule (what it refuses, marked by want comments,
// and what only looks alike), a floor or an edge. They are loaded together,
// since most of the time goes into the standard library.
func TestAnalyzer(t *testing.T) {
	pkgs := []string{"example.com/other"}
	for _, pkg := range []string{
		"kubelet/concurrency", "kubelet/clock", "kubelet/randomness", "kubelet/order",
		"kubelet/contexts", "kubelet/library", "kubelet/machine", "kubelet/globals",
		"kubelet/floors", "kubelet/app", "kubelet/util", "sim", "ground/loop", "ground/trace",
		"sim/apiserver", "fakecri", "scenarios", "cmd/drydock", "nowhere",
	} {
		pkgs = append(pkgs, "github.com/drydock-sim/drydock/"+pkg)
	}
	var escapes []determinism.Escape
	for _, r := range analysistest.Run(t, analysistest.TestData(), determinism.Analyzer, pkgs...) {
		found, ok := r.Result.([]determinism.Escape)
		if !ok {
			t.Fatalf("the result for %s is a %T", r.Action.Package, r.Result)
		}
		escapes = append(escapes, found...)
	}
	var reasons []string
	for _, e := range escapes {
		if e.Line == 0 || !strings.HasSuffix(e.File, "a.go") {
			t.Errorf("escape %+v has no place", e)
		}
		reasons = append(reasons, e.Reason)
	}
	for _, want := range []string{"adds up", "counts", "of the outer one only"} {
		if !slices.Contains(reasons, want) {
			t.Errorf("no escape with the reason %q in %q", want, reasons)
		}
	}
	for _, r := range reasons {
		if strings.HasPrefix(r, "a slice") {
			t.Error("an escape that escapes nothing is in the list")
		}
	}
}
