package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/drydock-sim/drydock/scenarios"
)

// span is a flag's duration, which may have days: 1d12h.
type span time.Duration

// String implements pflag.Value.
func (s *span) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (s *span) Type() string { return "duration" }

// Set parses a duration as scenario files have it.
func (s *span) Set(text string) error {
	d, err := scenarios.ParseTime(text)
	if err != nil {
		return fmt.Errorf("%q is no time such as 90s, 1h30m or 1d", text)
	}
	*s = span(d)
	return nil
}

// spanVar declares a flag for a duration, which may have days.
func spanVar(fl *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	fl.Var((*span)(to), name, usage)
}

// outputVar declares --output of a command that writes text or JSON.
func outputVar(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVarP(to, "output", "o", "text", "text or json")
}

// checkOutput refuses other forms.
func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return badInput("--output: %q is none of text, json", output)
	}
	return nil
}

// The colours of a line, as terminals have them.
const (
	red, green, yellow = "31", "32", "33"
)

// lineColors are the beginnings of lines that have a colour.
var lineColors = []struct{ begin, color string }{
	{"ok       ", green}, {"PASS", green}, {"FAILED   ", red}, {"FAIL", red}, {"INTERNAL ERROR", red}, {"error: ", red}, {"DIFFERS", red}, {"VERIFIED", green},
	{"warning: ", yellow}, {"undecided ", yellow}, {"INTERRUPTED", yellow},
}

// colored writes lines in colours by what they begin with. A line that is written in parts has
// the colour of its first part.
type colored struct {
	w    io.Writer
	rest bool // the last line goes on
}

// colorsOn returns w, or what colours its lines if w is a terminal that nobody asked to be plain.
func colorsOn(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return w
	}
	return &colored{w: f}
}

// Write implements io.Writer.
func (c *colored) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		begins := !c.rest
		c.rest = !strings.HasSuffix(line, "\n")
		color := ""
		if begins {
			color = colorOf(line)
		}
		if color == "" {
			b.WriteString(line)
			continue
		}
		text := strings.TrimSuffix(line, "\n")
		b.WriteString("\x1b[" + color + "m" + text + "\x1b[0m" + line[len(text):])
	}
	if _, err := io.WriteString(c.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// colorOf is the colour of a line: that of its beginning, or of a Warning in a timeline.
func colorOf(line string) string {
	for _, x := range lineColors {
		if strings.HasPrefix(line, x.begin) {
			return x.color
		}
	}
	if len(line) > 80 && strings.Contains(line, " event    Warning ") {
		return yellow
	}
	return ""
}
