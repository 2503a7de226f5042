package report

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

func TestThresholds(t *testing.T) {
	figures := []Figure{{"podStartup.p99", "s", 0.5}, {"restarts", "", 3}}
	for _, tt := range []struct{ text, want string }{
		{"podStartup.p99 < 5s", "kept podStartup.p99 < 5s: it is 500ms"},
		{"podStartup.p99<=500ms", "kept podStartup.p99<=500ms: it is 500ms"},
		{"podStartup.p99 < 500ms", "missed podStartup.p99 < 500ms: it is 500ms"},
		{"restarts == 3", "kept restarts == 3: it is 3"},
		{"restarts > 3", "missed restarts > 3: it is 3"},
		{"restarts >= 3", "kept restarts >= 3: it is 3"},
		{"apiGet.p99 < 1s", "missed apiGet.p99 < 1s: there is no such figure: nothing of it happened, or it is not modelled"},
		{"podStartup.p99", `"podStartup.p99" is no threshold such as podStartup.p99 < 5s`},
		{"podStartup.p99 < 5", "is a time: 5s"},
		{"restarts < 5s", "is a number"},
		{"restarts => 5", "=> is none of"},
		{"restarts < many", `"many" is neither a number nor a time`},
		{"podstart.p99 < 5s", `there is no figure "podstart.p99"; there are podStartupAll.count`},
	} {
		threshold, err := ParseThreshold(tt.text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			kept, line := threshold.Judge(figures)
			got = map[bool]string{true: "kept ", false: "missed "}[kept] + line
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
}

// TestFarLimits: a limit far above the figures is told and not drawn, so that they fill the picture.
func TestFarLimits(t *testing.T) {
	for p99, far := range map[time.Duration]bool{300 * time.Millisecond: true, 3 * time.Second: false} {
		r := &Report{For: time.Minute, Startup: Startup{Width: time.Minute, Over: []Percentiles{{Count: 1, P50: p99, P90: p99, P99: p99}}}}
		c := r.startupOver()
		svg := c.svg()
		if got := strings.Contains(c.about, "far above"); got != far {
			t.Errorf("%v: it tells %v", p99, c.about)
		}
		if got := !strings.Contains(svg, ">5</text>"); got != far {
			t.Errorf("%v: the axis has %s", p99, svg)
		}
	}
}

// TestFirstLooks: what kubelets ask for at their start and is not there yet is no trouble.
func TestFirstLooks(t *testing.T) {
	looks := []apiserver.CodeCount{{Code: 200, Count: 5}, {Code: 404, Count: 2}}
	r := &Report{API: &apiserver.Stats{Requests: []apiserver.RequestStats{
		{User: apiserver.UserKubelet, Verb: "get", Resource: "nodes", Codes: looks}, {User: apiserver.UserKubelet, Verb: "get", Resource: "leases", Codes: looks},
		{User: apiserver.UserKubelet, Verb: "get", Resource: "pods", Codes: looks}, {User: "job-controller", Verb: "get", Resource: "nodes", Codes: looks},
	}}}
	if about := r.aboutAPI(); !strings.Contains(about, "Of the errors 4 are no trouble") {
		t.Error(about)
	}
}
