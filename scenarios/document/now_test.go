package document

import (
	"strings"
	"testing"
)

func TestParseAction(t *testing.T) {
	three := 3
	s := &Scenario{Spec: Spec{Nodes: []NodeGroup{{Name: "node", Count: &three}}}}
	for _, tt := range []struct{ text, want string }{
		{"{powerCut: {node: node-*, for: 1m}}", "powerCut"},
		{`{"fault": {"component": "kube-scheduler", "partition": {}}}`, "fault"},
		{"powerCut: {node: other}", "there is no node"},
		{"powerCut: {}", "must be set, as there are 3 nodes"},
		{"{powerCut: {node: node-0}, boot: {node: node-0}}", "an action is one thing"},
		{"{at: 1s, boot: {node: node-0}}", `unknown field "at"`},
		{"{apply: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}}}", "spec.containers"},
		{"{apply: {files: [x]}}", "there are no files here"},
		{"{boot: {node: node-0}}\n---\n{boot: {node: node-1}}", "want one action"},
		{"boot", "want one action"},
		{"", "want one action"},
		{"{", "bad YAML"},
	} {
		a, err := ParseAction([]byte(tt.text), s)
		switch {
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: %v, want %s", tt.text, err, tt.want)
		case err == nil && a.Kind() != tt.want:
			t.Errorf("%s: %s, want %s", tt.text, a.Kind(), tt.want)
		}
	}
}
