package busybox

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// changeLink is what changes network devices, which are not kept.
func (c *call) changeLink() int {
	if !c.p.Can(kernel.CapNetAdmin) {
		c.errorf("RTNETLINK answers: Operation not permitted")
		return 2
	}
	return 0
}

// runBrctl makes and removes bridges, which are not kept.
func runBrctl(c *call) int {
	o := c.getopt("+")
	if len(o.args) == 0 {
		c.usage()
	}
	switch o.args[0] {
	case "show":
		c.print("bridge name\tbridge id\t\tSTP enabled\tinterfaces\n")
		return 0
	case "addbr", "delbr":
		if len(o.args) != 2 {
			c.usage()
		}
		if !c.p.Can(kernel.CapNetAdmin) {
			c.die("bridge %s: Operation not permitted", o.args[1])
		}
		return 0
	}
	c.usage()
	return 1
}

// runIpcs lists shared memory; of queues and semaphores there are none.
func runIpcs(c *call) int {
	o := c.getopt("aqsmtcplui:")
	all := !o.has('q') && !o.has('s') && !o.has('m')
	if all || o.has('q') {
		c.print("\n------ Message Queues --------\nkey        msqid      owner      perms      used-bytes   messages    \n")
	}
	if all || o.has('m') {
		c.print("\n------ Shared Memory Segments --------\nkey        shmid      owner      perms      bytes      nattch     status      \n")
		users := names{c: c}
		for line := range strings.Lines(c.p.Container().SharedMemory()) {
			f := strings.Fields(line)
			if len(f) < 8 || f[0] == "key" {
				continue
			}
			key, _ := strconv.ParseInt(f[0], 10, 64)
			uid, _ := strconv.Atoi(f[7])
			c.printf("0x%08x %-10s %-10s %-10s %-10s %-10s\n", uint32(key), f[1], users.user(uid), f[2], f[3], f[6])
		}
	}
	if all || o.has('s') {
		c.print("\n------ Semaphore Arrays --------\nkey        semid      owner      perms      nsems     \n")
	}
	c.print("\n")
	return 0
}
