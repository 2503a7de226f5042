package dra

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

const (
	// healthTimeout is for how long a driver's word about a device holds, unless the
	// driver says otherwise (DefaultHealthTimeout).
	healthTimeout = 30 * time.Second
	// healthPause is the one before a stream that has ended is begun again.
	healthPause = 5 * time.Second
	// healthFile has what drivers said for the next kubelet, below the kubelet's root
	// directory.
	healthFile = "dra_health_state"
)

// DeviceName is a driver's name for a device: that of its pool, and its own.
type DeviceName struct{ Pool, Device string }

// deviceHealth is what a driver said of a device (state.DeviceHealth).
type deviceHealth struct {
	PoolName           string
	DeviceName         string
	Health             v1.ResourceHealthStatus
	LastUpdated        time.Time
	HealthCheckTimeout time.Duration
	Message            string
}

// driverHealth are a driver's devices, by pool and name (state.DriverHealthState).
type driverHealth struct{ Devices map[string]deviceHealth }

// health is what drivers say of their devices (healthInfoCache). Upstream looks how old
// their word is whenever a status is made; here the pods concerned are told of its end,
// because nothing else tells those who leave out syncs.
type health struct {
	drivers map[string]driverHealth
	stale   *loop.Timer // the next word that ends; nil: none did yet
}

// watchHealth follows a driver's stream for as long as ctx lasts.
func (p *Plugins) watchHealth(ctx context.Context, driver string, r *registered) {
	client := drahealth.NewDRAResourceHealthClient(r.conn)
	for {
		stream, err := client.NodeWatchResources(ctx, &drahealth.NodeWatchResourcesRequest{})
		if err == nil {
			err = p.receive(stream, driver)
			p.clearHealth(driver)
		}
		// Upstream asks again each 5 s; who has no such service has none then either.
		if status.Code(err) == codes.Unimplemented || p.c.Group.Loop().Sleep(ctx, healthPause) != nil {
			return
		}
	}
}

// receive takes a stream's messages until it ends (HandleWatchResourcesStream).
func (p *Plugins) receive(stream drahealth.DRAResourceHealth_NodeWatchResourcesClient, driver string) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err //nolint:wrapcheck // its code is looked at
		}
		p.takeHealth(driver, m.Devices)
	}
}

// takeHealth notes what a driver says of its devices. Of one that it no longer mentions the
// last word holds until it ends.
func (p *Plugins) takeHealth(driver string, list []*drahealth.DeviceHealth) {
	now := p.c.Group.Loop().Now()
	if p.health.drivers == nil {
		p.health.drivers = map[string]driverHealth{}
	}
	d, ok := p.health.drivers[driver]
	if !ok {
		d.Devices = map[string]deviceHealth{}
		p.health.drivers[driver] = d
	}
	var changed []DeviceName
	told := map[string]bool{}
	for _, m := range list {
		next := healthOf(m, now)
		key := next.key()
		told[key] = true
		was, ok := d.Devices[key]
		d.Devices[key] = next
		if was.LastUpdated = now; !ok || was != next {
			changed = append(changed, DeviceName{next.PoolName, next.DeviceName})
		}
	}
	for key, h := range d.Devices { //drydock:unordered each by itself; who is told is sorted
		if !told[key] && h.Health != v1.ResourceHealthStatusUnknown && now.Sub(h.LastUpdated) > h.HealthCheckTimeout {
			h.Health, h.Message, h.LastUpdated = v1.ResourceHealthStatusUnknown, "", now
			d.Devices[key] = h
			changed = append(changed, DeviceName{h.PoolName, h.DeviceName})
		}
	}
	p.armStale()
	if len(changed) > 0 {
		p.writeHealth()
		p.c.HealthChanged(driver, changed, true)
	}
}

func healthOf(m *drahealth.DeviceHealth, now time.Time) deviceHealth {
	h := deviceHealth{
		PoolName: m.GetDevice().GetPoolName(), DeviceName: m.GetDevice().GetDeviceName(),
		Health: v1.ResourceHealthStatusUnknown, LastUpdated: now, HealthCheckTimeout: healthTimeout, Message: m.GetMessage(),
	}
	switch m.GetHealth() {
	case drahealth.HealthStatus_HEALTHY:
		h.Health = v1.ResourceHealthStatusHealthy
	case drahealth.HealthStatus_UNHEALTHY:
		h.Health = v1.ResourceHealthStatusUnhealthy
	}
	if s := m.GetHealthCheckTimeoutSeconds(); s > 0 {
		h.HealthCheckTimeout = time.Duration(s) * time.Second
	}
	if len(h.Message) > v1.ResourceHealthMessageMaxLength {
		h.Message = h.Message[:v1.ResourceHealthMessageMaxLength-3] + "..."
	}
	return h
}

func (h *deviceHealth) key() string { return h.PoolName + "/" + h.DeviceName }

// current is what is known of a device now: a word that is too old says nothing
// (getHealthInfo).
func (p *Plugins) current(driver, pool, device string) (v1.ResourceHealthStatus, string) {
	h, ok := p.health.drivers[driver].Devices[pool+"/"+device]
	if !ok || p.c.Group.Loop().Since(h.LastUpdated) > h.HealthCheckTimeout {
		return v1.ResourceHealthStatusUnknown, ""
	}
	return h.Health, h.Message
}

// armStale has the pods told whose devices' word ends next.
func (p *Plugins) armStale() {
	var next time.Time
	now := p.c.Group.Loop().Now()
	for _, d := range p.health.drivers { //drydock:unordered the earliest of all
		for _, h := range d.Devices { //drydock:unordered the earliest of all
			if end := h.end(); h.Health != v1.ResourceHealthStatusUnknown && end.After(now) && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	if next.IsZero() {
		return
	}
	if p.health.stale == nil {
		p.health.stale = p.c.Group.NewTimer("dra-health", p.stale)
	}
	p.health.stale.ResetAt(next)
}

// end is the first instant at which a word holds no longer.
func (h *deviceHealth) end() time.Time { return h.LastUpdated.Add(h.HealthCheckTimeout + 1) }

// stale tells the pods whose devices' word has just ended. Their next sync shows it, which
// nobody brings forward.
func (p *Plugins) stale() {
	now := p.c.Group.Loop().Now()
	for driver, d := range p.health.drivers { //drydock:unordered who is told does nothing by it
		var ended []DeviceName
		for _, h := range d.Devices { //drydock:unordered as above
			if h.end().Equal(now) {
				ended = append(ended, DeviceName{h.PoolName, h.DeviceName})
			}
		}
		if len(ended) > 0 {
			p.c.HealthChanged(driver, ended, false)
		}
	}
	p.armStale()
}

// clearHealth forgets what a driver said whose stream has ended. Pods show it with their
// next sync.
func (p *Plugins) clearHealth(driver string) {
	d, ok := p.health.drivers[driver]
	if !ok {
		return
	}
	var gone []DeviceName
	for _, h := range d.Devices { //drydock:unordered who is told does nothing by it
		gone = append(gone, DeviceName{h.PoolName, h.DeviceName})
	}
	delete(p.health.drivers, driver)
	p.writeHealth()
	p.c.HealthChanged(driver, gone, false)
}

// readHealth takes over what drivers told an earlier kubelet.
func (p *Plugins) readHealth() {
	data, err := p.c.FS.ReadFile(path.Join(p.c.Dir, healthFile))
	if err == nil {
		err = json.Unmarshal(data, &p.health.drivers)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.c.Log("Failed to load health checkpoint, proceeding with empty cache: %v", err)
	}
	for name, d := range p.health.drivers { //drydock:unordered each by itself
		if d.Devices == nil {
			delete(p.health.drivers, name)
			continue
		}
		for key, h := range d.Devices { //drydock:unordered each by itself
			if h.HealthCheckTimeout == 0 {
				h.HealthCheckTimeout = healthTimeout
				d.Devices[key] = h
			}
		}
	}
	p.armStale()
}

func (p *Plugins) writeHealth() {
	data, err := json.Marshal(p.health.drivers)
	if err == nil {
		err = filesystem.Replace(p.c.FS, path.Join(p.c.Dir, healthFile), data, 0o600)
	}
	if err != nil {
		p.c.Log("Failed to save health checkpoint after update. Kubelet restart may lose the device health information: %v", err)
	}
}

// Users are the pods that have one of a driver's devices by their claims, in order.
func (m *Manager) Users(driver string, devices []DeviceName) []types.UID {
	var out []types.UID
	for _, c := range m.claims { //drydock:unordered sorted below
		if slices.ContainsFunc(c.DriverState[driver].Devices, func(d device) bool {
			return slices.Contains(devices, DeviceName{d.PoolName, d.DeviceName})
		}) {
			for uid := range c.PodUIDs { //drydock:unordered sorted below
				out = append(out, types.UID(uid))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
