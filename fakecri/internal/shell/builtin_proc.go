package shell

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// cdCmd is cd, by the names that lead there (-L) unless -P. CDPATH counts; a
// directory that it found is shown. -L is the default, as POSIX has it: PWD shows the way through
// links.
func cdCmd(s *shell, argv []string) int {
	args := argv[1:]
	physical := false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		args = args[1:]
		if o == "--" {
			break
		}
		for i := 1; i < len(o); i++ {
			switch o[i] {
			case 'P', 'L':
				physical = o[i] == 'P'
			default:
				return s.raise("illegal option -%c", o[i])
			}
		}
	}
	var dest string
	show := false
	switch {
	case len(args) == 0:
		var ok bool
		// Without HOME ash stays where it is, and says nothing.
		if dest, ok = s.vars.get("HOME"); !ok {
			return 0
		}
	case args[0] == "-":
		dest, show = s.vars.value("OLDPWD"), true
	default:
		dest = args[0]
	}
	dest = cmp.Or(dest, ".")
	try := []string{dest}
	// Names that begin with /, . or .. mean one place only.
	if first, _, _ := strings.Cut(dest, "/"); first != "" && first != "." && first != ".." {
		if cdpath := s.vars.value("CDPATH"); cdpath != "" {
			try = nil
			for d := range strings.SplitSeq(cdpath, ":") {
				try = append(try, path.Join(d, dest))
			}
			try = append(try, dest)
		}
	}
	var err error
	for _, d := range try {
		if err = chdir(s, d, physical); err == nil {
			// A directory of CDPATH is shown, since the name did not say where
			// it would lead.
			if show || d != dest && d[0] == '/' {
				s.out = append(s.out, s.vars.value("PWD")+"\n"...)
			}
			return 0
		}
	}
	return s.raise("can't cd to %s: %s", dest, explain(err, ""))
}

// chdir changes the directory and PWD with it, by the names that lead there;
// physical, by where they lead. The kernel resolves the names itself, so a
// missing part of the way is its error.
//
// .. is taken off the name before the kernel sees it, so cd .. after a link goes back to where
// the link is.
func chdir(s *shell, dir string, physical bool) error {
	full := dir
	if !path.IsAbs(full) {
		full = s.pwd() + "/" + dir
	}
	full = path.Clean(full)
	if physical {
		r, err := s.p.View().EvalSymlinks(full)
		if err != nil {
			return err
		}
		full = r
	}
	if err := s.p.Chdir(full); err != nil {
		return err
	}
	// OLDPWD is what PWD was, also if somebody has changed PWD by hand.
	old := s.pwd()
	s.vars.set("OLDPWD", old, flagExport)
	s.vars.set("PWD", full, flagExport)
	s.cwd = full
	return nil
}

// pwd is the working directory by the names that led there.
func (s *shell) pwd() string {
	if s.cwd != "" {
		return s.cwd
	}
	return s.p.Dir
}

// pwdCmd is pwd. Without -P it shows the names that led there, even if a link among them leads
// elsewhere by now.
func pwdCmd(s *shell, argv []string) int {
	dir := s.pwd()
	if len(argv) > 1 && argv[1] == "-P" {
		if r, err := s.p.View().EvalSymlinks(dir); err == nil {
			dir = r
		}
	}
	s.out = append(s.out, dir+"\n"...)
	return 0
}

// findJob is children.find with a message if there is none.
func findJob(s *shell, name string) *job {
	found := s.kids.find(name)
	if found == nil {
		s.raise("%s: no such job", name)
	}
	return found
}

// waitCmd is wait: for all children, for jobs by %N, for processes by number,
// or with -n for the next. A signal with a trap ends it with 128 and the
// signal. What is no child is 127. With several operands the status is the last one's.
func waitCmd(s *shell, argv []string) int {
	args := argv[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	// What comes before takes its time before somebody is waited for.
	s.settle()
	if len(args) == 1 && args[0] == "-n" {
		return s.kids.waitNext()
	}
	if len(args) == 0 {
		if sig := s.kids.waitJob(nil); sig != 0 {
			return 128 + sig
		}
		return 0
	}
	status := 0
	for _, a := range args {
		var found *job
		if strings.HasPrefix(a, "%") {
			if found = findJob(s, a); found == nil {
				return 2
			}
		} else {
			// A number that is none is an error of usage; any other may be the number of no
			// child.
			pid, ok := s.number(a)
			if !ok {
				return 2
			}
			// A job is found by any of its processes, not only by $!.
			for _, j := range s.kids.jobs {
				if slices.Contains(j.pids, pid) {
					found = j
				}
			}
		}
		if found == nil {
			status = 127
			continue
		}
		if sig := s.kids.waitJob(found); sig != 0 {
			return 128 + sig
		}
		status = found.status()
	}
	return status
}

// jobsCmd is jobs, the newest first as ash lists them. Jobs that have ended are
// shown once. Ends are taken from the kernel first, by poll, since no wait may have seen them.
func jobsCmd(s *shell, argv []string) int {
	s.kids.poll()
	long, pids := false, false
	for _, a := range argv[1:] {
		switch a {
		case "-l":
			long = true
		case "-p":
			pids = true
		}
	}
	// remove changes the list while it is gone through.
	list := append([]*job(nil), s.kids.jobs...)
	for i := len(list) - 1; i >= 0; i-- {
		j := list[i]
		at := len(s.kids.jobs) - 1
		for s.kids.jobs[at] != j {
			at--
		}
		if pids {
			s.out = append(s.out, strconv.Itoa(j.pids[0])+"\n"...)
			continue
		}
		mark := byte(' ')
		// + marks the newest job, - the one before it.
		switch at {
		case len(s.kids.jobs) - 1:
			mark = '+'
		case len(s.kids.jobs) - 2:
			mark = '-'
		}
		line := fmt.Sprintf("[%d]%c  ", j.number, mark)
		if long {
			line += strconv.Itoa(j.pids[0]) + " "
		}
		state := "Running"
		if j.done() {
			// A job's state is that of its last process.
			ex := j.exits[len(j.exits)-1]
			switch {
			case ex.Signal != 0:
				state = signalText(ex.Signal)
			case ex.Code != 0:
				state = fmt.Sprintf("Done(%d)", ex.Code)
			default:
				state = "Done"
			}
			s.kids.remove(j)
		}
		s.out = append(s.out, fmt.Sprintf("%-33s\n", line+state)...)
	}
	return 0
}

// fgCmd is fg and bg, which fail without job control; the words are ash's.
func fgCmd(s *shell, argv []string) int {
	if len(argv) > 1 && strings.HasPrefix(argv[1], "%") && findJob(s, argv[1]) == nil {
		return 2
	}
	if len(s.kids.jobs) == 0 {
		return s.raise("No current job")
	}
	return s.raise("job (null) not created under job control")
}

// killCmd is kill, as a builtin for the sake of %N. Time that was spent passes
// before the signal does.
//
// A negative number is a process group and 0 the shell's own, as the kernel takes them; 0 as the
// signal only asks whether the process is there.
func killCmd(s *shell, argv []string) int {
	args := argv[1:]
	sig := 15
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		if o == "-l" {
			return listSignals(s, args[1:])
		}
		args = args[1:]
		name := o[1:]
		switch {
		case o == "--":
			name = ""
		case o == "-s" || o == "-n":
			if len(args) == 0 {
				s.plain("bad signal name '%s'", "(null)")
				return 1
			}
			name, args = args[0], args[1:]
		}
		if name != "" {
			n, ok := kernel.SignalNumber(name)
			if !ok || name == "EXIT" {
				s.plain("bad signal name '%s'", name)
				return 1
			}
			sig = n
		}
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		s.plain("you need to specify whom to kill")
		return 1
	}
	status := 0
	for _, a := range args {
		var pids []int
		if strings.HasPrefix(a, "%") {
			j := findJob(s, a)
			if j == nil {
				return 2
			}
			pids = j.pids
		} else {
			n, err := strconv.Atoi(a)
			if err != nil {
				s.plain("invalid number '%s'", a)
				status = 1
				continue
			}
			pids = []int{n}
		}
		// A builtin's time before the signal would otherwise pass after it.
		s.settle()
		for _, pid := range pids {
			if err := s.p.Kill(pid, sig); err != nil {
				s.plain("can't kill pid %d: %s", pid, explain(err, ""))
				status = 1
			}
		}
	}
	return status
}

// listSignals is kill -l. A name gives its number, a number its name: "kill -l $?" names what
// killed a command.
func listSignals(s *shell, args []string) int {
	if len(args) == 0 {
		for i := 1; i <= kernel.SIGSYS; i++ {
			s.out = append(s.out, fmt.Sprintf("%2d) %s\n", i, signalName(i))...)
		}
		return 0
	}
	for _, a := range args {
		n, ok := kernel.SignalNumber(a)
		// A status above 128 names its signal by the low 7 bits.
		if v, err := strconv.Atoi(a); err == nil && v >= 0 {
			n, ok = v&0x7f, true
		}
		if !ok {
			s.plain("unknown signal '%s'", a)
			return 1
		}
		if a[0] >= '0' && a[0] <= '9' {
			s.out = append(s.out, signalName(n)+"\n"...)
		} else {
			s.out = append(s.out, strconv.Itoa(n)+"\n"...)
		}
	}
	return 0
}

// timesCmd is times: no processor is simulated for the shell.
func timesCmd(s *shell, _ []string) int {
	s.out = append(s.out, "0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n"...)
	return 0
}

// umaskCmd is umask, octal or symbolic. The mask is the process's and counts for files that it
// makes from now on, by redirections too.
func umaskCmd(s *shell, argv []string) int {
	args := argv[1:]
	symbolic := false
	if len(args) > 0 && args[0] == "-S" {
		symbolic, args = true, args[1:]
	}
	if len(args) == 0 {
		m := s.p.Umask
		if !symbolic {
			s.out = append(s.out, fmt.Sprintf("%04o\n", m)...)
			return 0
		}
		for i, who := range "ugo" {
			if i > 0 {
				s.out = append(s.out, ',')
			}
			s.out = append(s.out, byte(who), '=')
			for j, c := range "rwx" {
				// The mask has the bits that are taken away: one that is missing is
				// allowed.
				if m>>(6-3*i)&(4>>j) == 0 {
					s.out = append(s.out, byte(c))
				}
			}
		}
		s.out = append(s.out, '\n')
		return 0
	}
	a := args[0]
	// A symbolic mask says what is allowed.
	flip := uint32(0)
	if a == "" || a[0] < '0' || a[0] > '9' {
		flip = 0o777
	}
	m, ok := posix.ParseMode(a, s.p.Umask^flip, false, s.p.Umask)
	if !ok || m > 0o777 {
		return s.raise("illegal mode: %s", a)
	}
	s.p.Umask = m ^ flip
	return 0
}

// limits are what ulimit shows: the name, the letter and the value in a
// container.
var limits = [...]struct {
	name   string
	letter byte
	value  string
}{
	{"core file size (blocks)", 'c', "unlimited"}, {"data seg size (kb)", 'd', "unlimited"}, {"scheduling priority", 'e', "0"},
	{"file size (blocks)", 'f', "unlimited"}, {"pending signals", 'i', "96365"}, {"max locked memory (kb)", 'l', "8192"},
	{"max memory size (kb)", 'm', "unlimited"}, {"open files", 'n', "1048576"}, {"POSIX message queues (bytes)", 'q', "819200"},
	{"real-time priority", 'r', "0"}, {"stack size (kb)", 's', "8192"}, {"cpu time (seconds)", 't', "unlimited"},
	{"max user processes", 'u', "unlimited"}, {"virtual memory (kb)", 'v', "unlimited"}, {"file locks", 'x', "unlimited"},
}

// ulimitCmd is ulimit: limits can be set and are shown, and bind nothing, of
// which a warning tells.
func ulimitCmd(s *shell, argv []string) int {
	letter := byte('f')
	all := false
	args := argv[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for i := 1; i < len(args[0]); i++ {
			switch c := args[0][i]; c {
			case 'H', 'S':
			case 'a':
				all = true
			default:
				letter = c
			}
		}
		args = args[1:]
	}
	known := false
	for _, l := range limits {
		if !all && l.letter != letter {
			continue
		}
		known = true
		value := l.value
		for _, x := range s.limits {
			if x.letter == l.letter {
				value = x.value
			}
		}
		switch {
		case all:
			s.out = append(s.out, fmt.Sprintf("%-32s(-%c) %s\n", l.name, l.letter, value)...)
		// H and S are taken and not told apart: both limits are one value here.
		case len(args) > 0:
			if _, ok := s.number(args[0]); !ok && args[0] != "unlimited" {
				return 2
			}
			// The list is shared with subshells, so it is copied when it grows.
			s.limits = append(s.limits[:len(s.limits):len(s.limits)], limit{l.letter, args[0]})
			s.warn("ulimit -%c is kept but binds nothing", l.letter)
		default:
			s.out = append(s.out, value+"\n"...)
		}
	}
	if !known {
		return s.raise("illegal option -%c", letter)
	}
	return 0
}

// limit is a limit that a script has set. There are so few that a list does.
type limit struct {
	letter byte
	value  string
}
