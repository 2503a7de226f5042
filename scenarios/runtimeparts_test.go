package scenarios

import (
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
)

func TestParseFaults(t *testing.T) {
	want := fakecri.Fault{Method: "StopContainer", Pod: "default/web", Error: &fakecri.FaultError{Code: "Unavailable", Message: "later"}, Count: 2}
	for name, tc := range map[string]struct {
		text string
		from time.Duration
	}{
		"list":     {text: "- method: StopContainer\n  pod: web\n  count: 2\n  error: {code: Unavailable, message: later}\n"},
		"cri":      {text: "- cri: {method: StopContainer, pod: web, count: 2, error: {code: Unavailable, message: later}}\n"},
		"actions":  {text: "- at: 10s\n  fault: {cri: {method: StopContainer, pod: web, count: 2, error: {code: Unavailable, message: later}}}\n", from: 10 * time.Second},
		"no at":    {text: "- fault: {cri: {method: StopContainer, pod: web, count: 2, error: {code: Unavailable, message: later}}}\n"},
		"mapping":  {text: "faults:\n- method: StopContainer\n  pod: web\n  count: 2\n  error: {code: Unavailable, message: later}\n"},
		"a single": {text: "method: StopContainer\npod: web\ncount: 2\nerror: {code: Unavailable, message: later}\n"},
		"JSON":     {text: `{"method": "StopContainer", "pod": "web", "count": 2, "error": {"code": "Unavailable", "message": "later"}}`},
	} {
		got, err := ParseFaults("f.yaml", []byte(tc.text))
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		if got[0].From != tc.from {
			t.Errorf("%s: from %v, want %v", name, got[0].From, tc.from)
		}
		g := got[0]
		if g.Method != want.Method || g.Pod != want.Pod || g.Count != want.Count || g.Error == nil || *g.Error != *want.Error {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if got, err := ParseFaults("f.yaml", []byte("- {pod: '*', hang: true}\n")); err != nil || got[0].Pod != "*" {
		t.Errorf("any pod: %+v, %v", got, err)
	}
	for _, text := range []string{"", "# nothing\n", "[]\n", "faults: []\n"} {
		if got, err := ParseFaults("f.yaml", []byte(text)); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestParseImageNames(t *testing.T) {
	got, err := ParseImages("f.yaml", []byte("- name: a:1\n  aliases: [quay.io/x/a:2]\n  auth: {username: u, password: p}\n- name: 'missing.example/*'\n  pull: {fails: {code: NotFound}}\n"))
	if err != nil || len(got) != 2 || len(got[0].Aliases) != 1 || got[0].Auth == nil || got[0].Auth.Password != "p" || got[1].Fail == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseImagesAndPrograms(t *testing.T) {
	const images = "- name: app:1\n  size: 10M\n  present: true\n  pull: {takes: 2s..3s}\n"
	const whole = `apiVersion: drydock.dev/v1
kind: Scenario
metadata: {name: x}
spec:
  images: [{name: app:1, size: 10M, present: true, pull: {takes: 2s..3s}}]
  programs: [{match: {image: app*}, runFor: 5s, exit: 3}]
`
	for _, text := range []string{images, "images:\n" + images, whole} {
		got, err := ParseImages("i.yaml", []byte(text))
		if err != nil || len(got) != 1 || got[0].Name != "app:1" || got[0].Size != 10_000_000 || !got[0].Present || got[0].Pull.Max != 3*time.Second {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"- {match: {image: app*}, runFor: 5s, exit: 3}", "programs:\n- {match: {image: app*}, runFor: 5s, exit: 3}", whole} {
		got, err := ParsePrograms("p.yaml", []byte(text))
		if err != nil || len(got) != 1 || got[0].Match.Image != "app*" || got[0].Behaviour.ExitCode != 3 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestPartErrors(t *testing.T) {
	faults := func(text string) error { _, err := ParseFaults("f.yaml", []byte(text)); return err }
	images := func(text string) error { _, err := ParseImages("f.yaml", []byte(text)); return err }
	programs := func(text string) error { _, err := ParsePrograms("f.yaml", []byte(text)); return err }
	for _, tc := range []struct {
		parse      func(string) error
		text, want string
	}{
		{faults, "- method: StopContianer\n  hang: true\n", `f.yaml:1:11: faults[0].method: there is no CRI method "StopContianer" (did you mean "StopContainer"?)`},
		{faults, "- method: StopContainer\n", `f.yaml:1:3: faults[0]: has no effect: needs error, latency or hang`},
		{faults, "- hang: true\n- hnag: true\n", `f.yaml:2:3: faults[1].hnag: unknown field "hnag" (did you mean "hang"?)`},
		{faults, "- {hang: true, nth: -1}\n", `f.yaml:1:21: faults[0].nth: -1 is negative`},
		{faults, "- {error: 12}\n", `f.yaml:1:11: faults[0].error: want a text, got the number 12: put it in quotes`},
		{faults, "- {api: {error: 500}}\n", `f.yaml:1:3: faults[0]: a container runtime has faults of cri only`},
		{faults, "7\n", `f.yaml:1:1: want a list of faults, got the number 7`},
		{faults, "[7]\n", `f.yaml:1:2: faults[0]: want a mapping, got the number 7`},
		{faults, "faults: 7\n", `f.yaml:1:9: faults: want a list, got the number 7`},
		{faults, "a: [\n", `f.yaml:1:1: bad YAML: did not find expected node content`},
		{images, "- {size: 10M}\n", `f.yaml:1:3: images[0].name: must be set`},
		{images, "- {name: app:1, bogus: 1}\n", `f.yaml:1:17: images[0].bogus: unknown field "bogus"`},
		{images, "image: []\n", `f.yaml:1:1: want a list of images, or images: with one`},
		{images, "images: []\nx: 1\n", `f.yaml:2:1: x: unknown field "x" beside images`},
		{programs, "- {runFor: 5s}\n", `f.yaml:1:3: programs[0].match: must be set`},
		{programs, "- {match: {}, runFor: 5s, exit: 900}\n", `f.yaml:1:33: programs[0].exit: the exit code 900 is not within 0 and 255`},
	} {
		err := tc.parse(tc.text)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q:\n got %v\nwant %s", tc.text, err, tc.want)
		}
	}
}
