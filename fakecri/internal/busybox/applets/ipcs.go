package applets

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Ipcs is ipcs. Shared memory is that of the machine that the program runs on,
// if the container is in its IPC namespace; else all tables are empty. -t, -c,
// -p, -l, -u and -i are read and do nothing.
func Ipcs() applet.Applet { return applet.New(runIpcs, "ipcs", "[-qsm]") }

// runIpcs lists shared memory; of queues and semaphores there are none.
func runIpcs(c *applet.Call) int {
	o := c.Getopt("aqsmtcplui:")
	all := !o.Has('q') && !o.Has('s') && !o.Has('m')
	if all || o.Has('q') {
		c.Print("\n------ Message Queues --------\nkey        msqid      owner      perms      used-bytes   messages    \n")
	}
	if all || o.Has('m') {
		c.Print("\n------ Shared Memory Segments --------\nkey        shmid      owner      perms      bytes      nattch     status      \n")
		users := applet.Names{C: c}
		for line := range strings.Lines(c.P.Container().SharedMemory()) {
			f := strings.Fields(line)
			// The table of /proc/sysvipc/shm has a heading.
			if len(f) < 8 || f[0] == "key" {
				continue
			}
			key, _ := strconv.ParseInt(f[0], 10, 64)
			// The creator's number is the eighth field.
			uid, _ := strconv.Atoi(f[7])
			// /proc shows keys with a sign and in decimal, ipcs without and in
			// hexadecimal.
			c.Printf("0x%08x %-10s %-10s %-10s %-10s %-10s\n", uint32(key), f[1], users.User(uid), f[2], f[3], f[6])
		}
	}
	if all || o.Has('s') {
		c.Print("\n------ Semaphore Arrays --------\nkey        semid      owner      perms      nsems     \n")
	}
	c.Print("\n")
	return 0
}
