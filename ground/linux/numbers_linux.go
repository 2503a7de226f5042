package linux

import "syscall"

// Errno and Signal are the machine's own, so that its errors and the simulation's are alike.
type (
	Errno  = syscall.Errno
	Signal = syscall.Signal
)

// The errors that the simulation knows.
const (
	EACCES       = syscall.EACCES
	EADDRINUSE   = syscall.EADDRINUSE
	EAGAIN       = syscall.EAGAIN
	EBADF        = syscall.EBADF
	EBUSY        = syscall.EBUSY
	ECHILD       = syscall.ECHILD
	ECONNREFUSED = syscall.ECONNREFUSED
	ECONNRESET   = syscall.ECONNRESET
	EEXIST       = syscall.EEXIST
	EHOSTUNREACH = syscall.EHOSTUNREACH
	EINTR        = syscall.EINTR
	EINVAL       = syscall.EINVAL
	EIO          = syscall.EIO
	EISDIR       = syscall.EISDIR
	ELOOP        = syscall.ELOOP
	ENAMETOOLONG = syscall.ENAMETOOLONG
	ENETDOWN     = syscall.ENETDOWN
	ENOENT       = syscall.ENOENT
	ENOEXEC      = syscall.ENOEXEC
	ENOMEM       = syscall.ENOMEM
	ENOSPC       = syscall.ENOSPC
	ENOTDIR      = syscall.ENOTDIR
	ENOTEMPTY    = syscall.ENOTEMPTY
	ENXIO        = syscall.ENXIO
	EPERM        = syscall.EPERM
	EPIPE        = syscall.EPIPE
	EROFS        = syscall.EROFS
	ESPIPE       = syscall.ESPIPE
	ESRCH        = syscall.ESRCH
	ETIMEDOUT    = syscall.ETIMEDOUT
	EXDEV        = syscall.EXDEV
)

// The signals that the simulation names.
const (
	SIGALRM   = syscall.SIGALRM
	SIGBUS    = syscall.SIGBUS
	SIGFPE    = syscall.SIGFPE
	SIGHUP    = syscall.SIGHUP
	SIGINT    = syscall.SIGINT
	SIGKILL   = syscall.SIGKILL
	SIGPIPE   = syscall.SIGPIPE
	SIGPOLL   = syscall.SIGPOLL
	SIGPROF   = syscall.SIGPROF
	SIGPWR    = syscall.SIGPWR
	SIGQUIT   = syscall.SIGQUIT
	SIGSTKFLT = syscall.SIGSTKFLT
	SIGTERM   = syscall.SIGTERM
	SIGTRAP   = syscall.SIGTRAP
	SIGUSR1   = syscall.SIGUSR1
	SIGUSR2   = syscall.SIGUSR2
	SIGVTALRM = syscall.SIGVTALRM
	SIGXCPU   = syscall.SIGXCPU
	SIGXFSZ   = syscall.SIGXFSZ
)
