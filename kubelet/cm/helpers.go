package cm

import "time"

// The bounds of CPU shares, weights and quotas (pkg/kubelet/cm/helpers_linux.go).
const (
	MinShares    = 2
	MaxShares    = 262144
	sharesPerCPU = 1024
	minQuota     = 1000 // µs in a period
	maxWeight    = 10000
)

// DefaultCFSPeriod is cpuCFSQuotaPeriod unless it is set.
const DefaultCFSPeriod = 100 * time.Millisecond

// MilliCPUToShares returns the cpu.shares of so many thousandths of a CPU.
func MilliCPUToShares(milli int64) int64 {
	if milli >= MaxShares*1000/sharesPerCPU {
		return MaxShares
	}
	return max(milli*sharesPerCPU/1000, MinShares)
}

// SharesToMilliCPU returns what shares stand for, rounded up; 0 for the least.
func SharesToMilliCPU(shares int64) int64 {
	if shares < MinShares {
		return 0
	}
	return (shares*1000 + sharesPerCPU - 1) / sharesPerCPU
}

// MilliCPUToQuota returns the CFS quota in µs of a period; 0 for 0.
func MilliCPUToQuota(milli int64, period time.Duration) int64 {
	if milli == 0 {
		return 0
	}
	return max(milli*period.Microseconds()/1000, minQuota)
}

// CPUSharesToCPUWeight returns the cpu.weight of cgroup v2 for the cpu.shares of
// v1. Runtimes may convert otherwise for containers.
func CPUSharesToCPUWeight(shares int64) uint64 {
	if shares >= MaxShares {
		return maxWeight
	}
	return uint64(1 + (max(shares, MinShares)-MinShares)*9999/262142)
}
