// Package devicemanager gives containers the devices of device plugins: it takes in
// plugins and their lists of devices, picks devices for containers, asks the plugins how
// containers get at them, and tells the node's capacity. It mirrors upstream's
// pkg/kubelet/cm/devicemanager.
//
// Upstream picks devices in the order of a map; here it is that of their names.
//
// manager.go takes what is asked of the manager, plugins.go has the plugins and their
// devices, allocate.go picks devices, containers.go has what containers were given,
// hints.go tells the topology manager where devices are, checkpoint.go keeps all that
// over a restart.
package devicemanager
