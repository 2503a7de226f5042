package document

import "testing"

// A program that says only what a container uses leaves it to do what it does.
func TestProgramsBeside(t *testing.T) {
	for _, tc := range []struct {
		program             string
		beside, besideKnown bool
	}{
		{program: "{match: {pod: a}}"},
		{program: "{match: {pod: a}, cpu: 0}", besideKnown: true},
		{program: "{match: {pod: a}, memory: 20Mi, cpu: 5m}", besideKnown: true},
		{program: "{match: {pod: a}, beside: true, cpu: 5m}", beside: true, besideKnown: true},
		{program: "{match: {pod: a}, beside: true, ports: [80]}", beside: true},
		{program: "{match: {pod: a}, cpu: 5m, ports: [80]}"},
		{program: "{match: {pod: a}, cpu: 5m, ports: []}"},
		{program: "{match: {pod: a}, memory: 20Mi, onTerm: {ignore: true}}"},
		{program: "{match: {pod: a}, memory: 20Mi, runFor: 1m}"},
		{program: "{match: {pod: a}, memory: 20Mi, exec: [{exit: 1}]}"},
		{program: "{match: {pod: a}, attempts: [{memory: 20Mi}]}"},
	} {
		programs, err := ParsePrograms("programs.yaml", []byte("- "+tc.program+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", tc.program, err)
		}
		if p := programs[0]; p.Beside != tc.beside || p.BesideKnown != tc.besideKnown {
			t.Errorf("%s: beside %v, where known %v", tc.program, p.Beside, p.BesideKnown)
		}
	}
}
