// Package calls is how a call reaches the runtime, what it meets there and how long
// it takes. It knows no sandbox and no image: what a call is about is a Subject.
//
// # One way in
//
// Every call comes through a Caller, in one of three forms:
//
//   - Caller.Read, of a call that changes nothing: it runs in its caller's task.
//   - Change and Caller.Update, of one that does: it runs as a task of the daemon's
//     group, so that it dies with the daemon.
//   - Caller.Act, of one that only passes time between its begin and its end: it
//     runs as steps without a task. Sandboxes and containers are made that way,
//     since a node that starts makes hundreds at once.
//
// All three give the same answers to the same troubles: Canceled to the caller that
// is dead, Unavailable while the daemon is down or when it dies in the middle.
//
// # Faults and latencies
//
// A Fault is a rule: which calls, from when on, the n-th and how many, and what
// becomes of them. Daemon.gate applies the rules in the order in which they were
// added, latencies first, then hangs, then the first error. A latency is drawn by
// method and subject, so that it stays the same whatever else happens.
//
// # Files
//
// caller.go has the ways in and act.go the steps; daemon.go what a call meets,
// fault.go the rules, method.go the methods with their latencies. subject.go is what
// a call is about, record.go its line in the trace, errors.go what it fails with.
package calls
