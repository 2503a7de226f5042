package applets

import (
	"slices"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// All returns the catalogue.
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

// Names lists the names of all applets, sorted.
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
