package actor

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// exists reports whether there is anything by that name.
func (p *program) exists(name string) bool {
	_, err := p.w.Stat(name)
	return err == nil
}

// readFile returns a file's contents.
func (p *program) readFile(ctx context.Context, name string) ([]byte, error) {
	f, err := p.w.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(&reader{ctx, f})
}

// writeFile writes to a file, which it makes if need be; flag is O_TRUNC or
// O_APPEND.
func (p *program) writeFile(ctx context.Context, name string, flag int, text string) error {
	f, err := p.w.Open(name, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		return err
	}
	// Close is called even after a failed write, and the first error counts.
	_, err = f.Write(ctx, []byte(text))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// reader is a File with a context, which package io can read from: a File's own calls
// take a context each.
type reader struct {
	ctx context.Context
	f   File
}

// Read waits within the reader's context.
func (r *reader) Read(b []byte) (int, error) { return r.f.Read(r.ctx, b) }

// cat goes on after a file that fails, as cat(1) does, and exits with 1 then.
func (p *program) cat(ctx context.Context) int {
	if len(p.Args) == 0 {
		return p.pour(ctx, "standard input", p.w.Stdin())
	}
	code := 0
	for _, name := range p.Args {
		f, err := p.w.Open(name, os.O_RDONLY, 0)
		if err != nil {
			code = p.fail(ctx, name, err)
			continue
		}
		if c := p.pour(ctx, name, f); c != 0 {
			code = c
		}
		_ = f.Close()
	}
	return code
}

// pour copies a file to standard output.
func (p *program) pour(ctx context.Context, name string, f File) int {
	buf := make([]byte, 32<<10)
	for {
		// Read may return data together with its error, as io.Reader allows.
		n, err := f.Read(ctx, buf)
		if n > 0 {
			p.print(ctx, string(buf[:n]))
		}
		switch {
		case err == io.EOF:
			return 0
		case err != nil:
			return p.fail(ctx, name, err)
		}
	}
}

// write ends the text with a newline, so that the file is a text file.
func (p *program) write(ctx context.Context) int {
	if err := p.writeFile(ctx, p.Args[0], os.O_TRUNC, p.Args[1]+"\n"); err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return 0
}

// add is the command append, which makes the file if need be.
func (p *program) add(ctx context.Context) int {
	if err := p.writeFile(ctx, p.Args[0], os.O_APPEND, p.Args[1]+"\n"); err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return 0
}

// each does something with every argument and tells of each that fails.
// The exit code is 1 if any fails; the rest are still done.
func (p *program) each(ctx context.Context, args []string, do func(name string) error) int {
	code := 0
	for _, name := range args {
		if err := do(name); err != nil {
			code = p.fail(ctx, name, err)
		}
	}
	return code
}

// touch opens a missing file for appending: it is made, and nothing is written.
func (p *program) touch(ctx context.Context) int {
	return p.each(ctx, p.Args, func(name string) error {
		if p.exists(name) {
			return p.w.Chtimes(name, p.w.Now())
		}
		return p.writeFile(ctx, name, os.O_APPEND, "")
	})
}

func (p *program) rm(ctx context.Context) int { return p.each(ctx, p.Args, p.w.Remove) }

// mkdir makes no parents, unlike mkdir -p: a missing one is an error that a check can
// see.
func (p *program) mkdir(ctx context.Context) int {
	return p.each(ctx, p.Args, func(name string) error { return p.w.Mkdir(name, 0o755) })
}

func (p *program) mv(ctx context.Context) int {
	if err := p.w.Rename(p.Args[0], p.Args[1]); err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return 0
}

func (p *program) ln(ctx context.Context) int {
	if err := p.w.Symlink(p.Args[0], p.Args[1]); err != nil {
		return p.fail(ctx, p.Args[1], err)
	}
	return 0
}

// parseMode reads an octal mode.
// The special bits move, since fs.FileMode has them elsewhere than Unix does.
func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 16)
	if err != nil || n > 0o7777 {
		return 0, fmt.Errorf("%q is not an octal mode such as 0644", s)
	}
	mode := fs.FileMode(n & 0o777)
	for bit, m := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} { //drydock:unordered bits of one number
		if n&bit != 0 {
			mode |= m
		}
	}
	return mode, nil
}

func (p *program) chmod(ctx context.Context) int {
	mode, _ := parseMode(p.Args[0])
	return p.each(ctx, p.Args[1:], func(name string) error { return p.w.Chmod(name, mode) })
}

// fill writes zeros, in pieces, so that a disk that runs full is met on the way.
func (p *program) fill(ctx context.Context) int {
	size, _ := ParseSize(p.Args[1])
	f, err := p.w.Open(p.Args[0], os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	buf := make([]byte, 64<<10)
	for err == nil && size > 0 {
		_, err = f.Write(ctx, buf[:min(size, int64(len(buf)))])
		size -= int64(len(buf))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return 0
}

func (p *program) ls(ctx context.Context) int {
	dir := "."
	if len(p.Args) > 0 {
		dir = p.Args[0]
	}
	names, err := p.w.ReadDir(dir)
	if err != nil {
		return p.fail(ctx, dir, err)
	}
	for _, n := range names {
		p.print(ctx, n, "\n")
	}
	return 0
}

// stat leaves the size of directories out, as it depends on the file system.
func (p *program) stat(ctx context.Context) int {
	return p.each(ctx, p.Args, func(name string) error {
		i, err := p.w.Stat(name)
		if err != nil {
			return err
		}
		size := "-"
		if i.Mode.IsRegular() {
			size = strconv.FormatInt(i.Size, 10)
		}
		p.print(ctx, fmt.Sprintf("%s %d:%d %s %s\n", i.Mode, i.UID, i.GID, size, name))
		return nil
	})
}

func (p *program) readlink(ctx context.Context) int {
	to, err := p.w.Readlink(p.Args[0])
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	p.print(ctx, to, "\n")
	return 0
}

// testFile prints nothing: its exit code is what a probe is decided by.
func (p *program) testFile(context.Context) int {
	if slices.ContainsFunc(p.Args, func(name string) bool { return !p.exists(name) }) {
		return 1
	}
	return 0
}

// waitFile counts its timeout from the start for all files together.
func (p *program) waitFile(ctx context.Context) int {
	for _, name := range p.Args {
		for !p.exists(name) {
			if p.age() >= p.Options.Timeout {
				p.write2(ctx, "actor: wait-file: "+name+": not there after "+p.Options.Timeout.String()+"\n")
				return 1
			}
			p.w.Sleep(ctx, waitStep)
		}
	}
	return 0
}

// mount tells what is mounted at a path, by /proc/self/mounts.
// Of several mounts on one path the last is on top, so the last line counts.
func (p *program) mount(ctx context.Context) int {
	data, err := p.readFile(ctx, "/proc/self/mounts")
	if err != nil {
		return p.fail(ctx, "/proc/self/mounts", err)
	}
	found := ""
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == p.Args[0] {
			access, _, _ := strings.Cut(f[3], ",")
			found = f[2] + " " + access + "\n"
		}
	}
	if found == "" {
		p.write2(ctx, "actor: mount: "+p.Args[0]+": nothing is mounted there\n")
		return 1
	}
	p.print(ctx, found)
	return 0
}
