package scenarios

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/document"
)

// Ports, exec rules and images as they are written, and as the runtime gets
// them.
func TestAnswers(t *testing.T) {
	list, err := Parse("f.yaml", []byte(head+oneNode+`  images:
  - {name: "app:1", commands: [sh, /app], entrypoint: [/app], cmd: [serve], user: "1000", env: {B: "2", A: "1"}, workingDir: /srv, stopSignal: SIGQUIT}
  programs:
  - match: {pod: web}
    ports:
    - 80
    - {port: 81, after: 5s, until: 1m, latency: 1ms..2ms, http: [{path: /healthz, status: 503, body: no, until: 10s}], grpc: [{service: x, status: NOT_SERVING}]}
    exec:
    - {command: "cat *", exit: 1, output: hm, takes: 2s, after: 3s}
    terminationMessage: bye
  - match: {pod: mute}
    ports: []
  - match: {pod: all}
    runFor: 5s
`), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := list[0].Spec
	want := fakecri.Behaviour{
		Ports: []fakecri.Port{
			{Port: 80},
			{
				Port: 81, After: 5 * time.Second, Until: time.Minute, Latency: fakecri.Range{Min: time.Millisecond, Max: 2 * time.Millisecond},
				HTTP: []fakecri.HTTPAnswer{{Path: "/healthz", Status: 503, Body: "no", Until: 10 * time.Second}},
				GRPC: []fakecri.GRPCAnswer{{Service: "x", Status: "NOT_SERVING"}},
			},
		},
		Exec:               []fakecri.ExecRule{{Command: "cat *", Exit: 1, Output: "hm", Takes: fakecri.Exactly(2 * time.Second), After: 3 * time.Second}},
		TerminationMessage: "bye",
	}
	programs := document.RuntimePrograms(spec.Programs)
	if got := programs[0].Behaviour; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if programs[1].Ports == nil || len(programs[1].Ports) != 0 || programs[2].Ports != nil {
		t.Errorf("ports: %#v, %#v", programs[1].Ports, programs[2].Ports)
	}
	im := document.RuntimeImages(spec.Images)[0]
	if got, want := fmt.Sprintf("%v %v %v %s %v %s %d", im.Commands, im.Entrypoint, im.Cmd, im.User, im.Env, im.WorkingDir, im.StopSignal), "[sh /app] [/app] [serve] 1000 [A=1 B=2] /srv 3"; got != want {
		t.Errorf("image: %s, want %s", got, want)
	}
	for i := range programs {
		if err := programs[i].Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	for doc, want := range map[string]string{
		"programs: [{match: {}, ports: [0]}]":                                   `spec.programs[0].ports[0].port: the port 0 is not within 1 and 65535`,
		"programs: [{match: {}, ports: [http]}]":                                `spec.programs[0].ports[0]: want a whole number, got the text "http"`,
		"programs: [{match: {}, ports: [{port: 80, after: 5s, until: 5s}]}]":    `spec.programs[0].ports[0].until: 5s is not later than after, 5s`,
		"programs: [{match: {}, ports: [{port: 80, http: [{status: 99}]}]}]":    `spec.programs[0].ports[0].http[0].status: the status code 99 is not within 100 and 599`,
		"programs: [{match: {}, ports: [{port: 80, http: [{path: healthz}]}]}]": `spec.programs[0].ports[0].http[0].path: "healthz" begins with no slash, as every path does`,
		"programs: [{match: {}, ports: [{port: 80, grpc: [{status: UP}]}]}]":    `spec.programs[0].ports[0].grpc[0].status: "UP" is none of SERVING, NOT_SERVING, UNKNOWN, SERVICE_UNKNOWN`,
		"programs: [{match: {}, exec: [{exit: 300}]}]":                          `spec.programs[0].exec[0].exit: the exit code 300 is not within 0 and 255`,
		"programs: [{match: {}, attempts: [{exec: [{after: 2s, until: 1s}]}]}]": `spec.programs[0].attempts[0].exec[0].until: 1s is not later than after, 2s`,
		"images: [{name: a, commands: [bin/sh]}]":                               `spec.images[0].commands[0]: "bin/sh" is neither a name nor an absolute path`,
		"images: [{name: 'a/*', present: true}]":                                `spec.images[0].name: "a/*" stands for many images, which have no aliases and are not present`,
		"images: [{name: a, aliases: [b, C]}]":                                  `spec.images[0].aliases[1]: "C" is no image`,
		"images: [{name: a, workingDir: srv}]":                                  `spec.images[0].workingDir: "srv" is no absolute path`,
		"nodes: [{name: w, runtime: {latency: {ExecSnyc: 1s}}}]":                `there is no CRI method "ExecSnyc" (did you mean "ExecSync"?)`,
	} {
		text := head + oneNode + "  " + doc + "\n"
		if strings.HasPrefix(doc, "nodes") {
			text = head + "  " + doc + "\n"
		}
		_, err := Parse("f.yaml", []byte(text), LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
}
