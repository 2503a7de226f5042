package actor

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
)

func (p *program) exit(ctx context.Context) int {
	if len(p.Args) > 1 {
		p.line(ctx, strings.Join(p.Args[1:], " "))
	}
	code, _ := parseCode(p.Args[0])
	return code
}

func (p *program) sleep(ctx context.Context) int {
	d, _ := ParseDuration(p.Args[0])
	p.w.Sleep(ctx, d)
	return 0
}

func (p *program) echo(ctx context.Context) int {
	p.line(ctx, strings.Join(p.Args, " "))
	return 0
}

func (p *program) lines(ctx context.Context) int {
	n, _ := parseCount(p.Args[0])
	text := "line {n}"
	if len(p.Args) > 1 {
		text = p.Args[1]
	}
	for i := range n {
		p.line(ctx, fill(numbered(text, i+1), p.Options.Length))
	}
	return 0
}

func (p *program) args(ctx context.Context) int {
	for _, a := range p.Args {
		p.print(ctx, strconv.Quote(a), "\n")
	}
	return 0
}

// show prints what --print names.
func (p *program) show(ctx context.Context, what string) error {
	switch what {
	case "args":
		for _, a := range p.w.Args() {
			p.print(ctx, strconv.Quote(a), "\n")
		}
	case "env":
		for _, e := range p.environment() {
			p.print(ctx, e, "\n")
		}
	case "id":
		p.id(ctx)
	case "hostname":
		p.hostname(ctx)
	case "pid":
		p.pid(ctx)
	case "pwd":
		p.pwd(ctx)
	default:
		data, err := p.readFile(ctx, what)
		if err != nil {
			return err
		}
		p.print(ctx, string(data))
	}
	return nil
}

// environment is sorted, so that the output doesn't depend on the runtime's order.
func (p *program) environment() []string {
	list := slices.Clone(p.w.Env())
	slices.Sort(list)
	return list
}

// variable is a variable's value, and whether it is set.
// Of one that is set twice the last counts.
func (p *program) variable(name string) (string, bool) {
	value, found := "", false
	for _, e := range p.w.Env() {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value, found = v, true
		}
	}
	return value, found
}

func (p *program) env(ctx context.Context) int {
	if len(p.Args) == 0 {
		// It does not fail.
		_ = p.show(ctx, "env")
		return 0
	}
	v, ok := p.variable(p.Args[0])
	if !ok {
		// The exit code is that of fail, but there is no error that it could name.
		p.write2(ctx, "actor: env: "+p.Args[0]+": not set\n")
		return 1
	}
	p.print(ctx, v, "\n")
	return 0
}

func (p *program) id(ctx context.Context) int {
	uid, gid, groups := p.w.Identity()
	// Supplementary groups may or may not have gid among them, and come in any order.
	groups = append(slices.Clone(groups), gid)
	slices.Sort(groups)
	list := lists.Map(slices.Compact(groups), itoa)
	p.print(ctx, "uid=", itoa(uid), " gid=", itoa(gid), " groups=", strings.Join(list, ","), "\n")
	return 0
}

func (p *program) hostname(ctx context.Context) int {
	p.print(ctx, p.w.Hostname(), "\n")
	return 0
}

func (p *program) pwd(ctx context.Context) int {
	p.print(ctx, p.w.Dir(), "\n")
	return 0
}

func (p *program) pid(ctx context.Context) int {
	p.print(ctx, itoa(p.w.PID()), " ", itoa(p.w.PPID()), "\n")
	return 0
}

// ps lists processes as /proc has them.
// A process without a command line shows as [NAME], as in ps(1).
func (p *program) ps(ctx context.Context) int {
	names, err := p.w.ReadDir("/proc")
	if err != nil {
		return p.fail(ctx, "/proc", err)
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		dir := "/proc/" + itoa(pid)
		stat, err := p.readFile(ctx, dir+"/stat")
		if err != nil {
			// The process is gone.
			continue
		}
		// The name stands in parentheses and may itself have blanks, so the line is cut
		// behind it.
		head, rest, _ := strings.Cut(string(stat), ") ")
		parent := "0"
		if f := strings.Fields(rest); len(f) > 1 {
			parent = f[1]
		}
		command, _ := p.readFile(ctx, dir+"/cmdline")
		text := strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")
		if text == "" {
			_, comm, _ := strings.Cut(head, "(")
			text = "[" + comm + "]"
		}
		p.print(ctx, itoa(pid), " ", parent, " ", text, "\n")
	}
	return 0
}

func (p *program) kill(ctx context.Context) int {
	sig, _ := parseSignal(p.Args[0])
	pid, err := strconv.Atoi(p.Args[1])
	if err != nil || pid <= 0 {
		p.write2(ctx, "actor: kill: PID: "+strconv.Quote(p.Args[1])+" is not the number of a process\n")
		return 2
	}
	if err := p.w.Kill(pid, sig); err != nil {
		return p.fail(ctx, p.Args[1], err)
	}
	return 0
}

func (p *program) child(ctx context.Context) int {
	d, _ := ParseDuration(p.Args[0])
	if _, err := p.w.Spawn(ctx, "sleep", d.String()); err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return 0
}

// tty exits with 1 if there is none, as tty(1) does.
func (p *program) tty(ctx context.Context) int {
	if p.w.IsTerminal(p.w.Stdin()) {
		p.print(ctx, "tty\n")
		return 0
	}
	p.print(ctx, "not a tty\n")
	return 1
}

// deadline ends the program when a command takes longer than --timeout.
// Dial has the same limit, but what comes after it would wait without one.
func (p *program) deadline(what string) {
	d := p.Options.Timeout
	p.w.Go("timeout", func(ctx context.Context) {
		p.w.Sleep(ctx, d)
		p.write2(ctx, "actor: "+p.Command+": "+what+": no answer after "+d.Round(time.Millisecond).String()+"\n")
		p.w.Exit(ctx, 1)
	})
}
