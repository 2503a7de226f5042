// Package transcript runs transcript tests: files of testdata that hold commands
// and what they gave, in the manner of github.com/cockroachdb/datadriven. A
// reader sees a state machine's inputs and outputs without reading Go, and a
// change of behaviour as a diff of text; go test -rewrite writes it.
//
// A block is a comment, commands one a line, a line of four dashes, and what the
// commands gave together:
//
//	# A threshold is met when there is less, not when there is as much.
//	node hard=(memory.available,100Mi)
//	pod a memory=8Gi
//	run 5s
//	----
//	0s kill a
package transcript

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Command is one line of a block: a name and arguments, each a word or
// key=value.
type Command struct {
	Name string
	args []datadriven.CmdArg
	t    *testing.T
	line string
}

// Run runs each file of testdata. world is called for each file and returns what
// carries its commands out and returns their output.
func Run(t *testing.T, world func(t *testing.T) func(c *Command) string) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		do := world(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := do(&Command{Name: d.Cmd, args: d.CmdArgs, t: t, line: d.Pos})
			for _, line := range strings.Split(d.Input, "\n") {
				if line == "" {
					continue
				}
				name, args, err := datadriven.ParseLine(line)
				if err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				out += do(&Command{Name: name, args: args, t: t, line: d.Pos + ": " + line})
			}
			return out
		})
	})
}

// Fatalf ends the test with the command's place in the file.
func (c *Command) Fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf(c.line+": "+format, args...)
}

// Word is the i-th argument, counted from 0.
func (c *Command) Word(i int) string {
	if i >= len(c.args) {
		c.Fatalf("there is no argument %d", i)
	}
	return c.args[i].Key
}

// Each calls visit with all arguments from the i-th on, in their order.
func (c *Command) Each(i int, visit func(key string, vals []string)) {
	for _, a := range c.args[min(i, len(c.args)):] {
		visit(a.Key, a.Vals)
	}
}

// Has reports whether there is an argument of that name.
func (c *Command) Has(key string) bool {
	_, ok := c.find(key)
	return ok
}

func (c *Command) find(key string) (vals []string, ok bool) {
	for _, a := range c.args {
		if a.Key == key {
			return a.Vals, true
		}
	}
	return nil, false
}

// Text is the value of key=value, or none.
func (c *Command) Text(key, none string) string {
	if vals, ok := c.find(key); ok {
		return strings.Join(vals, ",")
	}
	return none
}

// Int is the number of key=value, or none.
func (c *Command) Int(key string, none int) int {
	text, ok := c.find(key)
	if !ok {
		return none
	}
	n, err := strconv.Atoi(strings.Join(text, ""))
	if err != nil {
		c.Fatalf("%v", err)
	}
	return n
}

// Quantity is the amount of key=value, or none: 8Gi, 100m, or a difference of
// two, 8Gi-100Mi.
func (c *Command) Quantity(key string, none int64) int64 {
	if !c.Has(key) {
		return none
	}
	first, second, minus := strings.Cut(c.Text(key, ""), "-")
	q := resource.MustParse(first)
	if minus {
		q.Sub(resource.MustParse(second))
	}
	return q.Value()
}

// Duration is the time of key=value, or none.
func (c *Command) Duration(key string, none time.Duration) time.Duration {
	if !c.Has(key) {
		return none
	}
	return c.duration(c.Text(key, ""))
}

// For is the first argument as a time.
func (c *Command) For() time.Duration { return c.duration(c.Word(0)) }

func (c *Command) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		c.Fatalf("%v", err)
	}
	return d
}

// Pairs reads key=(a,1,b,2).
func (c *Command) Pairs(key string) map[string]string {
	out := map[string]string{}
	vals, _ := c.find(key)
	for i := 0; i+1 < len(vals); i += 2 {
		out[vals[i]] = vals[i+1]
	}
	return out
}
