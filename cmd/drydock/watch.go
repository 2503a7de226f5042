package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// watchEvery is how often --watch looks at the files, in wall time.
const watchEvery = 200 * time.Millisecond

// stamps are the files that a run read, as they were then.
type stamps map[string]stamp

type stamp struct {
	at   time.Time
	size int64
}

// stampOf is how a file is now; zero if it is not there.
func stampOf(file string) stamp {
	st, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{st.ModTime(), st.Size()}
}

// changed returns a file that is not as it was, or "".
func (s stamps) changed() string {
	var files []string
	for f := range s {
		files = append(files, f)
	}
	slices.Sort(files)
	for _, f := range files {
		if stampOf(f) != s[f] {
			return f
		}
	}
	return ""
}

// runAgain runs, and runs again whenever a file that was read changes, until ctx ends. The exit
// code is that of the last run; a mistake in a file is told, and waited for.
func (f *runFlags) runAgain(ctx context.Context, args []string) error {
	for {
		seen := stamps{}
		for _, a := range args {
			if a != "-" {
				seen[a] = stampOf(a) // a directory: of files that come and go
			}
		}
		f.sel.read = func(file string) { seen[file] = stampOf(file) }
		err := f.run(ctx, args)
		if ctx.Err() != nil {
			return err
		}
		if ce, ok := err.(*codeError); ok && ce.err != nil {
			complain(f.stderr, ce.err)
		}
		fmt.Fprintf(f.stderr, "drydock: waiting for changes of %d files; Ctrl-C ends it\n", len(seen))
		for name := ""; name == ""; name = seen.changed() {
			select {
			case <-ctx.Done():
				if ce, ok := err.(*codeError); ok {
					return &codeError{code: ce.code}
				}
				return err
			case <-time.After(watchEvery):
			}
		}
		fmt.Fprintln(f.stderr)
	}
}
