// Package loop is the ground floor of Drydock: a single-threaded cooperative
// program with a clock of its own. It knows nothing of Kubernetes.
//
// # The model
//
// A [Loop] runs one step at a time. A step is either a callback (a [Timer]
// that fires) or a task that resumes. A task is plain blocking Go that gives
// way only where it waits: [Loop.Sleep], [Signal.Wait], [Event.Wait],
// [Queue.Get], [Queue.Put], [Semaphore.Acquire], [WaitGroup.Wait], [WaitAny],
// [Call], [Await]. So state that belongs to a loop needs no lock; but state
// read before a wait must be read again after it.
//
// Steps happen in the order of their time, then, among those that are due at
// the same instant, by the seed (seed 0: by the order in which they were
// scheduled). Within one stream (one task, one timer, one watch) the order is
// always first in, first out. No two steps read the same time: each adds at
// least one nanosecond.
//
// # Groups
//
// Every task and timer belongs to a [Group]. Groups die separately:
// [Group.Kill] unwinds its tasks, running their defers, and drops its timers.
// A killed task panics with a sentinel at its wait, and at each further wait,
// so nothing it does while unwinding can take time. Bodies must not swallow
// the sentinel for good: it comes again at the next wait.
//
// # Drivers
//
// [Engine] drives many loops in virtual time over several cores, in windows of
// one lookahead; a [Pacer] has it follow the wall clock. [Loop.RunUntil] drives a single loop in virtual time.
// [Loop.RunReal] drives a loop on the wall clock; there [Loop.Post] hands it
// work from other goroutines and [Await] runs calls off the loop.
//
// # Randomness
//
// [Loop.Uint64], [Loop.Float64], [Loop.Between] and [Loop.Jitter] draw by
// hashing (seed, loop name, purpose, object, n): a skipped draw never shifts
// another one.
package loop
