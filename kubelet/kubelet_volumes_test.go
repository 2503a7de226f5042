package kubelet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/kubelet"
)

// writeWithVolumes writes a static pod with volumes.
func (w *world) writeWithVolumes(name string, grace int) {
	w.t.Helper()
	text := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {terminationGracePeriodSeconds: %d,
 containers: [{name: main, image: "app:1", volumeMounts: [{name: d, mountPath: /d}, {name: i, mountPath: /i}]}],
 volumes: [{name: d, emptyDir: {}}, {name: i, downwardAPI: {defaultMode: 420, items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}`, name, name, grace)
	if err := w.fs.WriteFile("/etc/manifests/"+name+".yaml", []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// What is left out of the volume manager's loops, and resyncs of pods whose
// volumes show what they should, change nothing that can be seen.
func TestElisionIsInvisibleWithVolumes(t *testing.T) {
	var worlds [2]*world
	var stats [2]kubelet.Stats
	for i := range worlds {
		w := newWorld(t, i == 1)
		w.start()
		w.run(2)
		w.writeWithVolumes("web", 5)
		w.writeWithVolumes("other", 5)
		w.run(100)
		if err := w.rt.StopContainerOutside("default/web-node-0", "main"); err != nil {
			t.Fatal(err)
		}
		w.run(200)
		w.writeWithVolumes("web", 7)
		w.run(300)
		w.group.Kill()
		w.run(310)
		w.start()
		w.run(350)
		w.remove("other")
		w.run(500)
		worlds[i], stats[i] = w, w.kl.Stats()
		if dirs, _ := w.fs.ReadDir("/var/lib/kubelet/pods"); len(dirs) != 1 {
			t.Errorf("%d pod directories", len(dirs))
		}
		if calls := w.calls(0, "StartContainer"); len(calls) != 4 {
			t.Errorf("%v\n%s", calls, strings.Join(w.logs, "\n"))
		}
	}
	sameRecords(t, worlds[0].records, worlds[1].records)
	if stats[0].Resyncs == 0 {
		t.Errorf("no resync was left out: %+v", stats[0])
	}
}
