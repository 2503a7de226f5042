//go:build linux

package real

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// prepareProcess gives this process what a kubelet has: it is the last to be
// killed when memory runs out, and may have many files open. What is not
// permitted is logged only.
func prepareProcess(o *Options) {
	if score := o.Config.OOMScoreAdj; score != nil {
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(*score))), 0); err != nil {
			o.log("Failed to apply the OOM score %d to the kubelet: %v", *score, err)
		}
	}
	if n := uint64(max(o.Config.MaxOpenFiles, 0)); n > 0 {
		limit := unix.Rlimit{Cur: n, Max: n}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			o.log("Failed to set the limit of open files to %d: %v", n, err)
		}
	}
}
