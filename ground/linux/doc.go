// Package linux has Linux's error numbers and signals, on whatever machine it is
// compiled for. What runs in a simulated container sees Linux: an exit code of
// 128 plus a signal, an errno's text in a message. On Linux the types are package
// syscall's, so that what a real file system returns needs no translation;
// elsewhere they are types of their own, since a Mac counts SIGUSR1 as 30 and
// Windows has no SIGUSR1 at all. So a run has the same trace everywhere.
package linux
