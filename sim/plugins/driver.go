package plugins

import (
	"fmt"
	"slices"
)

// Driver describes a plugin that offers itself to kubelets by a socket in the registration
// directory: a driver of CSI or of DRA.
type Driver interface {
	// DriverName is the name that it registers by.
	DriverName() string
	// start has it listen, and returns what runs.
	start(h *Host) process
}

// process is a driver that runs.
type process interface {
	// stop closes its sockets, and ends what it does by itself.
	stop()
}

// driver is one that was started once.
type driver struct {
	Driver
	process process // nil: it is stopped
}

// StartDriver starts a driver, or one of the same name anew, which offers itself to
// kubelets.
func (h *Host) StartDriver(d Driver) {
	i := h.driver(d.DriverName())
	if i < 0 {
		i = len(h.drivers)
		h.drivers = append(h.drivers, &driver{})
	}
	h.drivers[i].halt(h)
	*h.drivers[i] = driver{d, d.start(h)}
}

// StopDriver has a driver go away: its sockets are closed and removed.
func (h *Host) StopDriver(name string) error {
	i := h.driver(name)
	if i < 0 || h.drivers[i].process == nil {
		return fmt.Errorf("there is no driver %s", name)
	}
	h.drivers[i].halt(h)
	return nil
}

// RestartDriver has a driver start again as it was, whether or not it was stopped.
func (h *Host) RestartDriver(name string) error {
	i := h.driver(name)
	if i < 0 {
		return fmt.Errorf("there is no driver %s", name)
	}
	h.StartDriver(h.drivers[i].Driver)
	return nil
}

// driver is the index of a driver that was started once; -1: none was.
func (h *Host) driver(name string) int {
	return slices.IndexFunc(h.drivers, func(d *driver) bool { return d.DriverName() == name })
}

// running returns the process of a driver; nil: none runs by that name.
func (h *Host) running(name string) process {
	if i := h.driver(name); i >= 0 {
		return h.drivers[i].process
	}
	return nil
}

func (d *driver) halt(h *Host) {
	if d.process == nil {
		return
	}
	h.tell(Call{At: h.l.Now(), Plugin: d.DriverName(), Method: "(stopped)"})
	d.process.stop()
	d.process = nil
}

// closeAll closes sockets.
func closeAll(sockets []*Server) {
	for _, s := range sockets {
		s.Close()
	}
}
