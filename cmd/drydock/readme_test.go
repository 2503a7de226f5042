package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the commands whose output the README shows.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	// How long it took is another every time.
	wall := regexp.MustCompile(` virtual in .* node-seconds/s;|in \S+ of wall time, .*|memory: .*`)
	for _, tt := range []struct {
		mark string
		code int
		args []string
	}{
		{"demo", exitOK, []string{"run", "scenarios/library/first/one-pod.yaml"}},
		{"compare", exitFailed, []string{
			"compare", "scenarios/library/first/under-pressure.yaml", "--seeds", "1-10",
			"--a-set", `spec.nodes[*].kubelet.evictionHard["memory.available"]=100Mi`,
		}},
		{"scale", exitOK, strings.Fields("scale --nodes 100 --pods-per-node 10 --for 10m --churn 1/s --api-load --progress 0")},
	} {
		begin, end := "<!-- "+tt.mark+": generated -->\n```\n", "```\n<!-- end of "+tt.mark+" -->\n"
		i, j := strings.Index(readme, begin)+len(begin), strings.Index(readme, end)
		if i < len(begin) || j < i {
			t.Fatalf("the README has no place for %s", tt.mark)
		}
		code, out, errs := drydock(t, tt.args...)
		if code != tt.code || errs != "" {
			t.Errorf("%v: code %d, %s", tt.args, code, errs)
		}
		if have := readme[i:j]; wall.ReplaceAllString(have, "") != wall.ReplaceAllString(out, "") {
			readme = readme[:i] + out + readme[j:]
			if !*update {
				t.Errorf("the README does not show what drydock %s prints now; go test ./cmd/drydock -run TestReadme -update writes it", strings.Join(tt.args, " "))
			}
		}
	}
	if *update && readme != string(data) {
		if err := os.WriteFile("README.md", []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDocsNameFiles wants the scenarios that the documents name, or link to, to
// be there.
func TestDocsNameFiles(t *testing.T) {
	t.Chdir("../..")
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal(docs, err)
	}
	for _, tt := range []struct {
		dir  string
		name *regexp.Regexp
		docs []string
	}{
		{".", regexp.MustCompile(`\b(scenarios/(?:library|long)/[a-z0-9/-]+\.yaml)`), append(docs, "README.md")},
		{"scenarios/library", regexp.MustCompile(`\]\(([a-z0-9./-]+\.yaml)\)`), []string{"scenarios/library/README.md"}},
	} {
		for _, doc := range tt.docs {
			data, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tt.name.FindAllSubmatch(data, -1) {
				if _, err := os.Stat(filepath.Join(tt.dir, string(m[1]))); err != nil {
					t.Errorf("%s: %v", doc, err)
				}
			}
		}
	}
}

// TestCookbook runs the scenarios of the cookbook as they are written.
func TestCookbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(recipes) < 5 {
		t.Fatalf("%d recipes", len(recipes))
	}
	for _, r := range recipes {
		file := filepath.Join(t.TempDir(), "recipe.yaml")
		if err := os.WriteFile(file, r[1], 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := drydock(t, "run", file); code != exitOK || strings.Contains(out, "\nwarning:") {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	}
}
