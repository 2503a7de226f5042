// Package applets is the catalogue of what a busybox image can run: a file for
// each program, and in it one exported function of one shape, which returns the
// program with its names.
//
// To add an applet, add its file, its function to All, and a row to the table
// in docs/shell.md (a test compares the two). A program with several names
// (grep, egrep, fgrep) is one entry.
//
// The comment of each function says what a reader of POSIX or of GNU's manual
// would not expect: where BusyBox 1.35 differs, what of it is not built and
// what then happens. Options that are read and do nothing are named there, too;
// what getopt does not know ends the applet with its usage message, as for the
// real one. Output formats and messages are BusyBox's to the byte, since logs
// and termination messages show them; testdata holds recordings.
//
// A file has, from the top: the entry, the types of one run of the program, the
// run, and what it alone needs. What two applets need is in package applet.
package applets

import (
	"slices"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// All returns the catalogue, in the order of the functions' names. Each call
// makes a new list: nothing is shared between nodes.
func All() []applet.Applet {
	return []applet.Applet{
		Arch(), Awk(), Base64(), Basename(), Brctl(), Busybox(), Cat(), Chmod(), Chown(), Cksum(), Clear(), Cmp(),
		Cp(), Cut(), Date(), Dd(), Df(), Diff(), Digest(), Dirname(), Dmesg(), Du(), Echo(), Env(), Expand(), Expr(),
		False(), Find(), Fold(), Free(), Grep(), Gzip(), Head(), Hexdump(), Hostid(), Hostname(), Httpd(), ID(), IP(),
		Ifconfig(), Ipcs(), Kill(), Killall(), Link(), Ln(), Logname(), Ls(), Mkdir(), Mkfifo(), Mktemp(), More(),
		Mount(), Mv(), Nc(), Netstat(), Nice(), Nl(), Nohup(), Nproc(), Nslookup(), Od(), Paste(), Pgrep(), Pidof(),
		Ping(), Printenv(), Printf(), Ps(), Pwd(), Readlink(), Realpath(), Reset(), Rev(), Rm(), Rmdir(), Route(),
		Sed(), Seq(), Setsid(), Sleep(), Sort(), Stat(), Stty(), Sync(), Sysctl(), TTY(), Tac(), Tail(), Tar(), Tee(),
		Test(), Time(), Timeout(), Top(), Touch(), Tr(), True(), Truncate(), Umount(), Uname(), Uniq(), Unlink(),
		Uptime(), Usemem(), Usleep(), Watch(), Wc(), Wget(), Which(), Whoami(), Xargs(), Xxd(), Yes(),
	}
}

// Others are programs that are none of BusyBox: containers have them whose images do.
func Others() []applet.Applet { return []applet.Applet{Curl()} }

// Names lists the names of all applets in the order of their bytes, as busybox
// --list does.
func Names() []string {
	var out []string
	for _, a := range All() {
		for _, n := range a.Names {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}
