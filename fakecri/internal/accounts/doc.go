// Package accounts keeps the sums of what a node's processes use, and acts when a
// limit is passed: the OOM killer's part of the kernel, and the limits of processes.
//
// # Sums
//
// A stated program uses what curves say (ground/usage). A ledger adds up curves that
// never change as one number, so that most containers cost an addition when they
// start and one when they end. What interpreted processes use is asked of the
// kernel.
//
// # Guards
//
// A guard acts when a sum passes a limit. It computes from the curves when that will
// be, and sets one timer; while the peaks of all curves fit below the limit it sets
// none. Interpreted processes say what they take when they take it, so a guard
// leaves them some slack and is told when they have used it up. There are guards for
// the machine, for all pods and for each pod whose programs could pass its limit, and
// three for who watches (Node.WatchUsage).
//
// Nested limits are enforced from the inside out: a charge exceeds the innermost
// first, as in the kernel.
//
// # Files
//
// usage.go has the sums, cpu.go those of processors under quotas, container.go what
// one container uses; guard.go the guards; oom.go who is killed, and pods' limits.
package accounts
