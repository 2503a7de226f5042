// Package nodeshutdown ends pods in order when the machine is about to go down.
// It mirrors upstream's pkg/kubelet/nodeshutdown at v1.36.
package nodeshutdown

import (
	"context"
	"time"
)

// Logind is the part of systemd-logind that holds a shutdown up. Its methods may
// wait.
type Logind interface {
	// CurrentInhibitDelay is InhibitDelayMaxUSec: for how long a lock holds a
	// shutdown up at most.
	CurrentInhibitDelay(ctx context.Context) (time.Duration, error)
	// OverrideInhibitDelay writes /etc/systemd/logind.conf.d/99-kubelet.conf.
	OverrideInhibitDelay(ctx context.Context, d time.Duration) error
	// ReloadLogindConf has logind read its configuration.
	ReloadLogindConf(ctx context.Context) error
	// InhibitShutdown takes a delay lock; release gives it back.
	InhibitShutdown(ctx context.Context) (release func(), err error)
	// MonitorShutdown has told called, as a step of the kubelet's loop, for each
	// PrepareForShutdown signal: true when the machine is about to go down,
	// false when that was called off. ended is called once if no more come.
	// Neither may wait.
	MonitorShutdown(ctx context.Context, told func(goingDown bool), ended func(err error)) error
}
