package kubelet_test

import (
	"fmt"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
)

// writeExclusive writes the manifest of a pod with CPUs of its own.
func (w *world) writeExclusive(name string, cpus int) {
	w.t.Helper()
	r := fmt.Sprintf("{cpu: %d, memory: 64Mi}", cpus)
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 5, containers: [{name: main, image: \"app:1\", resources: {requests: %s, limits: %s}}]}\n", name, r, r)
	if err := w.fs.WriteFile("/etc/manifests/"+name+".yaml", []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// cpuLists are the CPUs that calls gave to containers, "verb object list" each
// and the error if there was one; what failed several times is there once.
func (w *world) cpuLists() []string {
	var out []string
	for _, r := range w.records {
		list, failed := "", ""
		for _, f := range r.Fields {
			switch f.Key {
			case "cpusetCpus":
				list = " " + f.Value
			case "error":
				failed = " " + f.Value
			}
		}
		if r.Kind == trace.KindCRI && list != "" && (len(out) == 0 || failed == "" || out[len(out)-1] != r.Verb+" "+r.Object+list+failed) {
			out = append(out, r.Verb+" "+r.Object+list+failed)
		}
	}
	return out
}

// The CPU manager's passes over what it knows are left out; containers are told
// of their CPUs at the same times. So they are after a restart, and after the
// runtime was away.
func TestElisionIsInvisibleWithCPUManager(t *testing.T) {
	var worlds [2]*world
	for i := range worlds {
		w := newWorld(t, i == 1)
		start := func() {
			w.startWith(func(o *kubelet.Options) {
				c := *o.Config
				c.CPUManagerPolicy, c.SystemReserved = "static", map[string]string{"cpu": "1"}
				o.Config = &c
			})
		}
		start()
		w.write("shared", "", "app:1", 5)
		w.run(30)
		w.writeExclusive("own", 1)
		w.run(95)
		if err := w.rt.StopContainerOutside("default/shared-node-0", "main"); err != nil {
			t.Fatal(err)
		}
		w.run(150)
		w.remove("own")
		w.run(203)
		w.rt.StopDaemon()
		w.writeExclusive("late", 1)
		w.run(260)
		w.rt.StartDaemon()
		w.run(400)
		w.group.Kill()
		w.run(410)
		start()
		w.run(500)
		worlds[i] = w
	}
	sameRecords(t, worlds[0].records, worlds[1].records)
	const shared, late = "container default/shared-node-0/main ", "container default/late-node-0/main "
	worlds[0].expect("told", worlds[0].cpuLists(),
		"CreateContainer "+shared+"0-1", "UpdateContainerResources "+shared+"0-1",
		"UpdateContainerResources "+shared+"0", "CreateContainer container default/own-node-0/main 1",
		"CreateContainer "+shared+"0", "UpdateContainerResources "+shared+"0-1",
		"UpdateContainerResources "+shared+"0 Unavailable", "UpdateContainerResources "+shared+"0", "CreateContainer "+late+"1",
		"UpdateContainerResources "+late+"1", "UpdateContainerResources "+shared+"0")
}

// With policy none nothing is told, and both checkpoints say so.
func TestManagersOfPolicyNone(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.writeExclusive("own", 2)
	w.run(60)
	w.expect("told", w.cpuLists())
	for file, want := range map[string]string{
		"cpu_manager_state":    `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`,
		"memory_manager_state": `{"policyName":"None","machineState":{},`,
	} {
		data, err := w.fs.ReadFile("/var/lib/kubelet/" + file)
		if err != nil || len(data) < len(want) || string(data[:len(want)]) != want {
			t.Errorf("%s: %s, %v", file, data, err)
		}
	}
}

// A configuration that can't be is told before anything starts.
func TestManagersAreValidated(t *testing.T) {
	for want, change := range map[string]func(c *kubeletconfig.KubeletConfiguration){
		`unknown CPU Manager Policy option: "full-pcpus"`: func(c *kubeletconfig.KubeletConfiguration) {
			c.CPUManagerPolicy, c.CPUManagerPolicyOptions = "static", map[string]string{"full-pcpus": "true"}
		},
		`unknown Topology Manager Policy option: "closest"`: func(c *kubeletconfig.KubeletConfiguration) {
			c.TopologyManagerPolicy, c.TopologyManagerPolicyOptions = "restricted", map[string]string{"closest": "true"}
		},
	} {
		c := &kubeletconfig.KubeletConfiguration{}
		kubeletcfg.SetDefaults(c)
		change(c)
		if err := kubeletcfg.Validate(c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
