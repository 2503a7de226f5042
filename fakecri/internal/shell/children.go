package shell

import (
	"errors"
	"strconv"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/lists"
)

// job is a command that runs in the background, with its processes' numbers and
// ends. A process that was waited for is nil in procs.
type job struct {
	// number is the N of %N; the lowest free one, from 1.
	number int
	// procs, pids and exits are of one length, in the order of the pipeline.
	procs []*kernel.Process
	pids  []int
	exits []kernel.Exit
	left  int // processes that still run
	used  int // of a counter: the highest is the current job
}

// done reports whether no process of the job runs any more.
func (j *job) done() bool { return j.left == 0 }

// status is the exit status of the job's last process.
func (j *job) status() int { return j.exits[len(j.exits)-1].Code }

// children are the processes that a shell has started: it waits for them, and keeps
// those in the background as jobs.
//
// A wait takes whichever child ends first, as waitpid(-1) does, so each kind of wait must note
// the ends of the others' children.
type children struct {
	*process
	jobs []*job
	// count only grows, and so orders the jobs by age for %% and %-.
	count  int // jobs ever made
	lastBg int // $!
}

// reap notes how a child ended, if it is of a job; others are waited for by who
// started them. Of what is in no job, as the processes of <(...) are, the end is forgotten.
func (s *children) reap(p *kernel.Process, ex kernel.Exit) {
	for _, j := range s.jobs {
		for i, q := range j.procs {
			if q == p {
				j.exits[i] = ex
				j.procs[i] = nil
				j.left--
				return
			}
		}
	}
}

// foreground waits for a child and returns its status. Signals that come
// meanwhile stay for dotrap: a trap runs when the command has ended, as POSIX
// says.
func (s *children) foreground(child *kernel.Process) int {
	var buf [1]*kernel.Process
	buf[0] = child
	return s.waitAll(buf[:])[0].Code
}

// pipeline waits for all processes of a pipeline. The status is the last one's,
// or with pipefail the last that is not 0.
func (s *children) pipeline(procs []*kernel.Process, pipefail bool) int {
	exits := s.waitAll(procs)
	status := exits[len(exits)-1].Code
	if pipefail {
		status = 0
		for _, ex := range exits {
			if ex.Code != 0 {
				// The last in the pipeline's order, not in that of time.
				status = ex.Code
			}
		}
	}
	return status
}

// waitAll waits for processes and returns how they ended. Children of jobs that
// end meanwhile are noted: waiting takes whoever comes.
//
// The results have the order of procs. An error means that there are no children left to wait
// for.
func (s *children) waitAll(procs []*kernel.Process) []kernel.Exit {
	exits := make([]kernel.Exit, len(procs))
	for left := len(procs); left > 0; {
		p, ex, err := s.p.WaitAny(s.ctx)
		// A signal does not end the wait: its trap runs after the command.
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			break
		}
		mine := false
		for i, q := range procs {
			if q == p {
				exits[i], mine = ex, true
				left--
			}
		}
		// The death of a job is reported when the job is waited for.
		if mine {
			s.tellSignal(ex)
		} else {
			s.reap(p, ex)
		}
	}
	return exits
}

// add remembers background processes; the last one's number is $!. Their ends
// are kept until somebody asks, but not for ever.
//
// ash would keep an ended job until somebody asks, so a script that starts jobs in a loop and
// never waits would gather them without bound: above 64 the ended ones go.
func (s *children) add(procs []*kernel.Process) {
	// Jobs that have ended and that nobody asked for make room.
	if len(s.jobs) >= 64 {
		s.poll()
		kept := s.jobs[:0]
		for _, j := range s.jobs {
			if !j.done() {
				kept = append(kept, j)
			}
		}
		s.jobs = kept
	}
	n := 1
	// The lowest number that no job has.
	for again := true; again; {
		again = false
		for _, j := range s.jobs {
			if j.number == n {
				n++
				again = true
			}
		}
	}
	s.count++
	j := &job{number: n, procs: procs, exits: make([]kernel.Exit, len(procs)), left: len(procs), used: s.count}
	for _, p := range procs {
		j.pids = append(j.pids, p.PID())
	}
	s.jobs = append(s.jobs, j)
	s.lastBg = j.pids[len(j.pids)-1]
}

// poll notes which background processes have ended, without waiting for any.
func (s *children) poll() {
	for _, j := range s.jobs {
		for i, p := range j.procs {
			if p == nil {
				continue
			}
			// Asked first since Wait would wait: together they are waitpid(2) with WNOHANG.
			if _, ended := p.Ended(); ended {
				ex, err := s.p.Wait(s.ctx, p)
				// The call may be interrupted although the child has ended.
				for errors.Is(err, kernel.ErrInterrupted) {
					ex, err = s.p.Wait(s.ctx, p)
				}
				if err == nil {
					j.exits[i], j.procs[i] = ex, nil
					j.left--
				}
			}
		}
	}
}

// remove forgets a job.
func (s *children) remove(j *job) {
	for i, x := range s.jobs {
		if x == j {
			s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
			return
		}
	}
}

// waitJob waits for a job, or with nil for all. A signal with a trap cuts it
// short, also one that came before; its number is returned.
//
// It is what lets "sleep 3600 & wait" react to SIGTERM at once, an idiom of entrypoints: POSIX
// has wait return with more than 128 when a signal with a trap arrives, and the trap run right
// after it. Jobs stay in the list, so that their status can be asked for again.
func (s *children) waitJob(j *job) (signal int) {
	for {
		// Without a job all of them are waited for.
		busy := j != nil && !j.done()
		if j == nil {
			for _, x := range s.jobs {
				busy = busy || !x.done()
			}
		}
		if !busy {
			return 0
		}
		if sig := s.takeSignals(); sig != 0 {
			return sig
		}
		p, ex, err := s.p.WaitAny(s.ctx)
		switch {
		case errors.Is(err, kernel.ErrInterrupted):
			if sig := s.takeSignals(); sig != 0 {
				return sig
			}
		// No children are left, so nothing can end any more.
		case err != nil:
			return 0
		default:
			s.reap(p, ex)
			if j != nil && j.done() {
				s.tellSignal(ex)
			}
			// A child that sends a signal and ends at once cuts it short too.
			if sig := s.takeSignals(); sig != 0 {
				return sig
			}
		}
	}
}

// tellSignal says what killed a process that the shell has waited for, but for
// SIGINT and SIGPIPE, which are nobody's surprise. ash writes it to its own stderr, which in a
// container is the log.
func (s *children) tellSignal(ex kernel.Exit) {
	if t := signalText(ex.Signal); t != "" && ex.Signal != int(linux.SIGINT) && ex.Signal != int(linux.SIGPIPE) {
		_ = s.write(2, []byte(t+"\n"))
	}
}

// waitNext is wait -n: it waits for the job that ends next. The status is the job's; 127 if none
// runs, 128 and the number for a signal with a trap.
func (s *children) waitNext() int {
	running := func() []*job {
		return lists.Filter(s.jobs, func(j *job) bool { return !j.done() })
	}
	for busy := running(); len(busy) > 0; {
		if sig := s.takeSignals(); sig != 0 {
			return 128 + sig
		}
		p, ex, err := s.p.WaitAny(s.ctx)
		if err == nil {
			s.reap(p, ex)
		} else if !errors.Is(err, kernel.ErrInterrupted) {
			return 127
		}
		if sig := s.takeSignals(); sig != 0 {
			return 128 + sig
		}
		for _, j := range busy {
			if j.done() {
				return j.status()
			}
		}
	}
	return 127
}

// find returns the job that %n, %%, %+ or %- names, or nil. name begins with %. Names by a
// command's text, as %sleep, are not built and find nothing.
func (s *children) find(name string) *job {
	// The current job is the one used last, the previous one that before it.
	var current, previous *job
	for _, j := range s.jobs {
		if current == nil || j.used > current.used {
			current, previous = j, current
		} else if previous == nil || j.used > previous.used {
			previous = j
		}
	}
	var found *job
	switch name {
	case "%", "%%", "%+":
		found = current
	case "%-":
		found = previous
	default:
		n, err := strconv.Atoi(name[1:])
		for _, j := range s.jobs {
			if err == nil && j.number == n {
				found = j
			}
		}
	}
	return found
}
