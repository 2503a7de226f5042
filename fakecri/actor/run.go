package actor

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// waitStep is how often the program looks whether a file is there.
const waitStep = 50 * time.Millisecond

// run is the command of that name: everything that is to be there at once is
// there before it waits.
// The order is part of the language: files and what --print shows are complete before a
// port opens, so a check that connects finds them.
func (p *program) run(ctx context.Context) int {
	o := &p.Options
	// Signals are kept before the first wait, or one that comes early would end the
	// program without --at-exit and --termination-message.
	p.w.Signals(Known()...)
	if code, stopped := p.await(ctx, o.WaitFor); stopped {
		return code
	}
	attempt, err := p.count()
	if err != nil {
		return p.fail(ctx, "--count="+o.Count, err)
	}
	for _, f := range o.Write {
		if err := p.writeFile(ctx, f[0], os.O_TRUNC, f[1]); err != nil {
			return p.fail(ctx, "--write="+f[0], err)
		}
	}
	for _, f := range o.Append {
		if err := p.writeFile(ctx, f[0], os.O_APPEND, f[1]+"\n"); err != nil {
			return p.fail(ctx, "--append="+f[0], err)
		}
	}
	for _, what := range o.Print {
		if err := p.show(ctx, what); err != nil {
			return p.fail(ctx, "--print="+what, err)
		}
	}
	if code := p.begin(ctx); code != 0 {
		return code
	}
	return p.wait(ctx, attempt)
}

// begin starts what goes on beside waiting.
// It returns 0, or the exit code if something can't be started.
func (p *program) begin(ctx context.Context) int {
	o := &p.Options
	// A child is the program itself: the image has nothing else that could run.
	for _, d := range o.Child {
		if _, err := p.w.Spawn(ctx, "sleep", d.String()); err != nil {
			return p.fail(ctx, "--child="+d.String(), err)
		}
	}
	server := &servers{program: p}
	if o.ListenAfter == 0 {
		if code := server.listen(ctx); code != 0 {
			return code
		}
	} else {
		// The port opens late as a task of its own, so that logs and signals go on
		// meanwhile.
		p.w.Go("listen", func(ctx context.Context) {
			p.until(ctx, o.ListenAfter)
			// A port that can't be opened late ends the program as one at the start does.
			if code := server.listen(ctx); code != 0 {
				p.w.Exit(ctx, code)
			}
		})
	}
	if o.Memory > 0 {
		if o.MemoryAfter == 0 && o.MemoryOver == 0 {
			if err := p.w.Alloc(ctx, o.Memory); err != nil {
				return p.fail(ctx, "--memory", err)
			}
		} else {
			p.w.Go("memory", p.grow)
		}
	}
	if o.CPU > 0 {
		p.w.Go("cpu", func(ctx context.Context) { p.w.Burn(ctx, o.CPU) })
	}
	if o.EchoStdin || o.StdinExit {
		p.w.Go("stdin", p.echoStdin)
	}
	if len(o.Log) > 0 {
		p.logs(ctx)
	}
	return 0
}

// wait waits for the end and returns the exit code.
func (p *program) wait(ctx context.Context, attempt int) int {
	o := &p.Options
	for {
		// A negative time waits for ever, which is what no --for means.
		left := time.Duration(-1)
		if o.Limited {
			left = max(0, o.For-p.age())
		}
		sig := p.w.Signal(ctx, left)
		if sig == 0 {
			// No signal came: the time of --for is over.
			p.finish(ctx)
			if len(o.Exit) == 0 {
				return 0
			}
			// Runs beyond the list of codes exit with its last one.
			return o.Exit[min(attempt, len(o.Exit)-1)]
		}
		if code, stopped := p.signalled(ctx, sig); stopped {
			return code
		}
	}
}

// signalled deals with a signal; stopped says that the program is to end.
func (p *program) signalled(ctx context.Context, sig int) (code int, stopped bool) {
	o := &p.Options
	p.print(ctx, "signal ", signalName(sig), "\n")
	// A terminal sends SIGWINCH when its size changes, which ends no program.
	if sig == sigWINCH || slices.Contains(o.Ignore, sig) {
		return 0, false
	}
	// Further signals are printed while it stops, but neither hurry nor prolong it.
	for end := p.age() + o.StopAfter; p.age() < end; {
		if more := p.w.Signal(ctx, end-p.age()); more != 0 {
			p.print(ctx, "signal ", signalName(more), "\n")
		}
	}
	p.finish(ctx)
	return o.StopExit, true
}

// finish does what is to be done before the program ends, once.
// A signal, the end of standard input and a request to exit all come here, and one may
// come while another is being dealt with.
func (p *program) finish(ctx context.Context) {
	if p.ending {
		return
	}
	p.ending = true
	o := &p.Options
	for _, f := range o.AtExit {
		if err := p.writeFile(ctx, f[0], os.O_APPEND, f[1]+"\n"); err != nil {
			// A failure is only reported: the program ends with the code that it was told
			// to.
			p.fail(ctx, "--at-exit="+f[0], err)
		}
	}
	if o.TermSet {
		if err := p.writeFile(ctx, o.TermPath, os.O_TRUNC, o.Termination); err != nil {
			p.fail(ctx, "--termination-path="+o.TermPath, err)
		}
	}
}

// age is the time since the start.
func (p *program) age() time.Duration { return p.w.Now().Sub(p.start) }

// until waits until a time after the start.
func (p *program) until(ctx context.Context, d time.Duration) {
	if left := d - p.age(); left > 0 {
		p.w.Sleep(ctx, left)
	}
}

// await waits for files; a signal ends it as it would end the program.
// Waiting for the signal is also the sleep between two looks, so a stop is not delayed.
func (p *program) await(ctx context.Context, files []string) (code int, stopped bool) {
	for _, f := range files {
		for !p.exists(f) {
			if sig := p.w.Signal(ctx, waitStep); sig != 0 {
				if code, stopped := p.signalled(ctx, sig); stopped {
					return code, true
				}
			}
		}
	}
	return 0, false
}

// count counts a run in the file, and returns how many there were before.
// A file that is missing or holds no number counts as 0, since the first run makes it.
func (p *program) count() (int, error) {
	if p.Options.Count == "" {
		return 0, nil
	}
	// Files don't wait.
	ctx := context.Background()
	before := 0
	data, err := p.readFile(ctx, p.Options.Count)
	if err == nil {
		before, _ = parseCount(strings.TrimSpace(string(data)))
	}
	return before, p.writeFile(ctx, p.Options.Count, os.O_TRUNC, itoa(before+1)+"\n")
}

// grow takes memory, in steps.
func (p *program) grow(ctx context.Context) {
	o := &p.Options
	p.until(ctx, o.MemoryAfter)
	const steps = 20
	n := int64(1)
	if o.MemoryOver > 0 {
		n = steps
	}
	for i := range n {
		if i > 0 {
			p.w.Sleep(ctx, o.MemoryOver/steps)
		}
		// The difference of two running totals, since the amount may not divide by n.
		if err := p.w.Alloc(ctx, o.Memory*(i+1)/n-o.Memory*i/n); err != nil {
			p.w.Exit(ctx, p.fail(ctx, "--memory", err))
		}
	}
}

// echoStdin copies standard input.
func (p *program) echoStdin(ctx context.Context) {
	buf := make([]byte, 4096)
	// Standard input is read even without --stdin, as --stdin-exit has to see its end.
	for {
		// Read returns data and an error in one call, so data is printed before the error
		// counts.
		n, err := p.w.Stdin().Read(ctx, buf)
		if n > 0 && p.Options.EchoStdin {
			p.print(ctx, string(buf[:n]))
		}
		if err == nil {
			continue
		}
		if err != io.EOF {
			p.fail(ctx, "--stdin", err)
		}
		if p.Options.StdinExit {
			p.finish(ctx)
			p.w.Exit(ctx, 0)
		}
		return
	}
}

// logs writes the first lines, and starts what writes more.
// Without --log-after the first lines are written before the program waits, so a
// container that exits at once has them in its log.
func (p *program) logs(ctx context.Context) {
	o := &p.Options
	next := 0
	round := func(ctx context.Context, lines int) {
		// --log-batch lines make one round; {n} counts lines, not rounds.
		for range lines {
			text := o.Log[next%len(o.Log)]
			stream := p.w.Stdout()
			if o.LogStream == "stderr" || o.LogStream == "both" && next%2 == 1 {
				stream = p.w.Stderr()
			}
			next++
			// A failed write means that nobody reads any more, for which SIGPIPE would
			// end others.
			if _, err := stream.Write(ctx, []byte(fill(numbered(text, next), o.LogLength)+"\n")); err != nil {
				p.w.Exit(ctx, 1)
			}
		}
	}
	first := max(1, o.LogBatch)
	// Without an interval every text is written at least once.
	if o.LogEvery == 0 {
		first = max(first, len(o.Log))
	}
	if o.LogAfter == 0 {
		round(ctx, first)
	}
	if o.LogAfter == 0 && (o.LogEvery == 0 || o.LogCount == 1) {
		return
	}
	p.w.Go("log", func(ctx context.Context) {
		// Times are reckoned from the start, not from the last round, so that lateness
		// doesn't add up.
		at, times := o.LogAfter, 1
		if at > 0 {
			p.until(ctx, at)
			round(ctx, first)
		}
		for o.LogEvery > 0 && (o.LogCount == 0 || times < o.LogCount) {
			at += o.LogEvery
			p.until(ctx, at)
			round(ctx, first)
			times++
		}
	})
}

// numbered puts a number where {n} is.
func numbered(text string, n int) string { return strings.ReplaceAll(text, "{n}", itoa(n)) }

// fill makes a line as long as asked for.
// A longer one is not cut.
func fill(text string, length int64) string {
	if n := length - int64(len(text)); n > 0 {
		return text + strings.Repeat(".", int(n))
	}
	return text
}

// pause waits to be stopped.
// What it inherits is reaped by the World, not here.
func pause(p *program, ctx context.Context) int {
	// Only these two end it regularly; others do what they do to any program.
	p.w.Signals(sigTERM, sigINT)
	p.w.Signal(ctx, -1)
	return 0
}
