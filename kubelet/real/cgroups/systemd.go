//go:build linux

package cgroups

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

const (
	sliceSuffix = ".slice"

	systemdService = "org.freedesktop.systemd1"
	systemdObject  = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdManager = "org.freedesktop.systemd1.Manager"
	unitExists     = "org.freedesktop.systemd1.UnitExists"
	noSuchUnit     = "org.freedesktop.systemd1.NoSuchUnit"

	// jobTimeout is how long systemd may take for a unit, as in runc.
	jobTimeout = 30 * time.Second
	// quotaStep is what systemd rounds quotas to, in µs for each second.
	quotaStep = 10000
	// jobsUnhandled is how many ends of others' jobs may come at once.
	jobsUnhandled = 64
)

// Systemd returns the cgroups as the systemd driver has them: slices that systemd makes, over its
// bus, and keeps the values of. The files are written besides, as runc does, since systemd doesn't
// have all of them. It fails where nobody answers as systemd.
func (c *Cgroups) Systemd(ctx context.Context) (cm.Cgroups, error) {
	connect := c.o.Connect
	if connect == nil {
		connect = func() (*dbus.Conn, error) { return dbus.ConnectSystemBus() }
	}
	s := *c
	s.names.Systemd = true
	s.systemd = &systemd{connect: connect, unified: c.unified, period: c.o.CFSPeriod}
	err := await(ctx, func() error {
		if err := s.systemd.answers(); err != nil {
			return err
		}
		// Of the other driver, made before it was known which is used. One with pods in it stays.
		for _, m := range c.mounts {
			_ = unix.Rmdir(filepath.Join(m, c.names.Pods()))
		}
		return s.write(s.names.Pods(), values{})
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// systemd is that of the machine. One job is done after the other, since their ends come by one
// channel: pods' syncs run side by side.
type systemd struct {
	connect func() (*dbus.Conn, error)
	unified bool
	period  time.Duration

	mu   sync.Mutex
	conn *dbus.Conn
	jobs chan *dbus.Signal
}

// answers fails unless somebody is on the bus as systemd.
func (s *systemd) answers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.bus()
	return err
}

// bus returns a connection that hears of ends of jobs, a new one after it was lost.
func (s *systemd) bus() (*dbus.Conn, error) {
	if s.conn != nil && s.conn.Connected() {
		return s.conn, nil
	}
	conn, err := s.connect()
	if err != nil {
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	err = conn.AddMatchSignal(dbus.WithMatchInterface(systemdManager), dbus.WithMatchMember("JobRemoved"), dbus.WithMatchObjectPath(systemdObject))
	if err == nil {
		err = conn.Object(systemdService, systemdObject).Call(systemdManager+".Subscribe", 0).Err
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("systemd: %w", err), conn.Close())
	}
	s.conn, s.jobs = conn, make(chan *dbus.Signal, jobsUnhandled)
	conn.Signal(s.jobs)
	return conn, nil
}

// property is a unit's.
type property struct {
	Name  string
	Value dbus.Variant
}

// call calls systemd's manager.
func (s *systemd) call(method string, out any, args ...any) error {
	conn, err := s.bus()
	if err != nil {
		return err
	}
	c := conn.Object(systemdService, systemdObject).Call(systemdManager+"."+method, 0, args...)
	if c.Err != nil || out == nil {
		return c.Err
	}
	return c.Store(out)
}

// isCalled reports whether an error of the bus has a name.
func isCalled(err error, name string) bool {
	var e dbus.Error
	return errors.As(err, &e) && e.Name == name
}

// set makes a slice or changes the properties of the one that is there, until the machine's next
// start. Those above it come of themselves.
func (s *systemd) set(unit string, v values) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	resources := s.properties(v)
	begin := append([]property{
		{"Description", dbus.MakeVariant("Kubernetes' cgroup " + unit)},
		{"DefaultDependencies", dbus.MakeVariant(false)},
		{"MemoryAccounting", dbus.MakeVariant(true)},
		{"CPUAccounting", dbus.MakeVariant(true)},
		{"TasksAccounting", dbus.MakeVariant(true)},
	}, resources...)
	var job dbus.ObjectPath
	err := s.call("StartTransientUnit", &job, unit, "replace", begin, []struct {
		Name       string
		Properties []property
	}{})
	switch {
	case err == nil:
		return s.wait(unit, job)
	case !isCalled(err, unitExists):
		return fmt.Errorf("start %s: %w", unit, err)
	case len(resources) == 0:
		return nil
	}
	if err := s.call("SetUnitProperties", nil, unit, true, resources); err != nil {
		return fmt.Errorf("change %s: %w", unit, err)
	}
	return nil
}

// stop ends a slice; one that is not there is no error.
func (s *systemd) stop(unit string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var job dbus.ObjectPath
	err := s.call("StopUnit", &job, unit, "replace")
	if isCalled(err, noSuchUnit) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", unit, err)
	}
	return s.wait(unit, job)
}

// wait waits for the end of a job.
func (s *systemd) wait(unit string, job dbus.ObjectPath) error {
	late := time.NewTimer(jobTimeout)
	defer late.Stop()
	for {
		select {
		case sig, ok := <-s.jobs:
			if !ok {
				return fmt.Errorf("%s: the system bus went away", unit)
			}
			// JobRemoved(id, job, unit, result)
			if len(sig.Body) < 4 || sig.Body[1] != job {
				continue
			}
			if result := sig.Body[3]; result != "done" {
				return fmt.Errorf("%s: systemd's job ended with %v", unit, result)
			}
			return nil
		case <-late.C:
			return fmt.Errorf("%s: systemd takes longer than %v", unit, jobTimeout)
		}
	}
}

// properties are values as systemd has them.
func (s *systemd) properties(v values) (out []property) {
	add := func(name string, value any) { out = append(out, property{name, dbus.MakeVariant(value)}) }
	orInfinity := func(n int64) uint64 {
		if n < 0 {
			return math.MaxUint64
		}
		return uint64(n)
	}
	if v.shares > 0 {
		if s.unified {
			add("CPUWeight", cm.CPUSharesToCPUWeight(v.shares))
		} else {
			add("CPUShares", uint64(v.shares))
		}
	}
	if v.quota != 0 {
		perSecond := uint64(math.MaxUint64)
		if v.quota > 0 {
			perSecond = uint64(v.quota) * 1000000 / uint64(s.period.Microseconds())
			perSecond = (perSecond + quotaStep - 1) / quotaStep * quotaStep
			add("CPUQuotaPeriodUSec", uint64(s.period.Microseconds()))
		}
		add("CPUQuotaPerSecUSec", perSecond)
	}
	if v.memory != 0 {
		name := "MemoryLimit"
		if s.unified {
			name = "MemoryMax"
		}
		add(name, orInfinity(v.memory))
	}
	if s.unified && v.min != nil {
		add("MemoryMin", orInfinity(*v.min))
	}
	if s.unified && v.low != nil {
		add("MemoryLow", orInfinity(*v.low))
	}
	if v.pids > 0 {
		add("TasksMax", uint64(v.pids))
	}
	if mask := cpuMask(v.cpus); s.unified && len(mask) > 0 {
		add("AllowedCPUs", mask)
	}
	return out
}

// cpuMask is a list of CPUs ("0-2,5") as bits, the least first; nil for a list that is none.
func cpuMask(list string) (mask []byte) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil {
			return nil
		}
		for cpu := first; cpu <= last; cpu++ {
			for int(cpu/8) >= len(mask) {
				mask = append(mask, 0)
			}
			mask[cpu/8] |= 1 << (cpu % 8)
		}
	}
	return mask
}

// unit is the slice of a cgroup; "" for one that is none.
func unit(name string) string {
	if base := path.Base(name); strings.HasSuffix(base, sliceSuffix) {
		return base
	}
	return ""
}
