package gotest

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Summary is what came of tests under some seeds.
type Summary struct {
	// Passed, Failed and Skipped count tests, subtests included, one for each seed.
	Passed, Failed, Skipped int
	// Broken are packages that failed without a test that did: they could not be built,
	// or their process ended.
	Broken []string
	tests  []*outcome
}

// outcome is what came of one test.
type outcome struct {
	pkg, test string
	ran       int
	failed    []*uint64 // the seeds; nil is the test's own
}

// add counts what an event says.
func (s *Summary) add(e event, seed *uint64) {
	if e.Test == "" {
		if e.Action == "fail" && !slices.ContainsFunc(s.tests, func(o *outcome) bool { return o.pkg == e.Package && slices.Contains(o.failed, seed) }) {
			s.Broken = append(s.Broken, e.Package)
		}
		return
	}
	i := slices.IndexFunc(s.tests, func(o *outcome) bool { return o.pkg == e.Package && o.test == e.Test })
	if i < 0 {
		i = len(s.tests)
		s.tests = append(s.tests, &outcome{pkg: e.Package, test: e.Test})
	}
	o := s.tests[i]
	switch e.Action {
	case "pass":
		s.Passed++
	case "skip":
		s.Skipped++
	case "fail":
		s.Failed++
		o.failed = append(o.failed, seed)
	}
	o.ran++
}

// OK reports whether nothing failed.
func (s *Summary) OK() bool { return s.Failed == 0 && len(s.Broken) == 0 }

// Write writes the summary: a line for each test that failed, with the command that
// repeats it, and one with the counts.
func (s *Summary) Write(w io.Writer) error {
	var b strings.Builder
	failed := slices.DeleteFunc(slices.Clone(s.tests), func(o *outcome) bool { return len(o.failed) == 0 })
	slices.SortStableFunc(failed, func(a, b *outcome) int { return cmp.Compare(a.pkg, b.pkg) })
	for _, o := range failed {
		if slices.ContainsFunc(failed, func(sub *outcome) bool { return sub.pkg == o.pkg && strings.HasPrefix(sub.test, o.test+"/") }) {
			continue // its subtests say more
		}
		repeat := fmt.Sprintf("drydock test %s -- -run '%s'", o.pkg, pattern(o.test))
		if first := o.failed[0]; first != nil {
			repeat = fmt.Sprintf("drydock test --seeds %d %s -- -run '%s'", *first, o.pkg, pattern(o.test))
		}
		fmt.Fprintf(&b, "FAIL %s %s: %d of %d runs. %s\n", o.pkg, o.test, len(o.failed), o.ran, repeat)
	}
	for _, pkg := range s.Broken {
		fmt.Fprintf(&b, "FAIL %s: it could not be built, or its process ended\n", pkg)
	}
	fmt.Fprintf(&b, "%d passed, %d failed", s.Passed, s.Failed+len(s.Broken))
	if s.Skipped > 0 {
		fmt.Fprintf(&b, ", %d skipped", s.Skipped)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// pattern selects one test, by its whole name.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}
