package store

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// TestWorkloadsRefused holds what is refused of a manifest, and how.
func TestWorkloadsRefused(t *testing.T) {
	const tmpl = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: x}]}}"
	const job = "template: {spec: {restartPolicy: Never, containers: [{name: m, image: x}]}}"
	for _, tc := range []struct{ kind, version, spec, want string }{
		{"Deployment", "apps/v1", tmpl, ""},
		{"Deployment", "apps/v1", strings.Replace(tmpl, "{a: b}}, t", "{a: c}}, t", 1), "`selector` does not match template `labels`"},
		{"Deployment", "apps/v1", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}, " + tmpl, "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
		{"Deployment", "apps/v1", "strategy: {type: Recreate, rollingUpdate: {}}, " + tmpl, "may not be specified when strategy `type` is 'Recreate'"},
		{"Deployment", "apps/v1", "minReadySeconds: 600, " + tmpl, "must be greater than minReadySeconds"},
		{"ReplicaSet", "apps/v1", "replicas: -1, " + tmpl, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"DaemonSet", "apps/v1", "updateStrategy: {rollingUpdate: {maxSurge: 1}}, " + tmpl, "may not be set when maxUnavailable is non-zero"},
		{"StatefulSet", "apps/v1", tmpl, ""},
		{"StatefulSet", "apps/v1", "updateStrategy: {rollingUpdate: {partition: -1}}, " + tmpl, "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1"},
		{"StatefulSet", "apps/v1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}, " + tmpl, ""}, // dropped before it is looked at
		{"StatefulSet", "apps/v1", "volumeClaimTemplates: [{metadata: {name: d}}], " + tmpl, "spec.volumeClaimTemplates[0].spec.accessModes: Required value"},
		{"StatefulSet", "apps/v1", "podManagementPolicy: Any, " + tmpl, "must be 'OrderedReady' or 'Parallel'"},
		{"Job", "batch/v1", job, ""},
		{"Job", "batch/v1", strings.Replace(job, "Never", "Always", 1), `spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`},
		{"Job", "batch/v1", "completionMode: Indexed, " + job, ""},
		{"Job", "batch/v1", "completionMode: Indexed, parallelism: 2, " + job, "spec.completions: Required value: when completion mode is Indexed"},
		{"Job", "batch/v1", "backoffLimitPerIndex: 1, " + job, "requires indexed completion mode"},
		{"Job", "batch/v1", "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3, 1]}}]}, " + job, "must be ordered"},
		{"Job", "batch/v1", "completionMode: Indexed, completions: 100001, backoffLimitPerIndex: 1, maxFailedIndexes: 10000, parallelism: 10000, " + job, ""},
		{"Job", "batch/v1", "completionMode: Indexed, completions: 100001, backoffLimitPerIndex: 1, maxFailedIndexes: 10000, parallelism: 10001, " + job, "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"},
		{"Job", "batch/v1", "completionMode: Indexed, completions: 100001, backoffLimitPerIndex: 1, maxFailedIndexes: 10001, parallelism: 1, " + job, "spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000"},
		{"CronJob", "batch/v1", "schedule: '* * * * *', jobTemplate: {spec: {" + job + "}}", ""},
		{"CronJob", "batch/v1", "schedule: '* * *', jobTemplate: {spec: {" + job + "}}", "spec.schedule: Invalid value"},
		{"CronJob", "batch/v1", "timeZone: Europe/Rome, schedule: '* * * * *', jobTemplate: {spec: {" + job + "}}", ""},
		{"CronJob", "batch/v1", "timeZone: Europe/Drydock, schedule: '* * * * *', jobTemplate: {spec: {" + job + "}}", "unknown time zone Europe/Drydock"},
		{"CronJob", "batch/v1", "timeZone: local, schedule: '* * * * *', jobTemplate: {spec: {" + job + "}}", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"},
		{"CronJob", "batch/v1", "timeZone: '', schedule: '* * * * *', jobTemplate: {spec: {" + job + "}}", "timeZone must be nil or non-empty string"},
		{"CronJob", "batch/v1", "schedule: 'TZ=UTC', jobTemplate: {spec: {" + job + "}}", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"},
	} {
		obj, err := kinds.New(features.Gates{}).Decode([]byte("apiVersion: " + tc.version + "\nkind: " + tc.kind + "\nmetadata: {name: x}\nspec: {" + tc.spec + "}\n"))
		if err != nil {
			t.Fatalf("%s %s: %v", tc.kind, tc.spec, err)
		}
		switch err := kinds.New(features.Gates{}).Validate(obj); {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s {%s}: %v; want %q", tc.kind, tc.spec, err, tc.want)
		}
	}
}

// TestDropped wants maxUnavailable of a StatefulSet told, and gone however it comes.
func TestDropped(t *testing.T) {
	manifest := func(strategy string) kind.Object {
		obj, err := kinds.New(features.Gates{}).Decode([]byte("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: default}\nspec: {" + strategy +
			"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: x}]}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	dropped := func(obj kind.Object) []string { return kinds.New(features.Gates{}).Of(obj).Dropped(obj) }
	if told := dropped(manifest("updateStrategy: {rollingUpdate: {partition: 1}}, ")); told != nil {
		t.Errorf("told of %q", told)
	}
	limited := manifest("updateStrategy: {rollingUpdate: {partition: 1, maxUnavailable: 2}}, ")
	if told := dropped(limited); len(told) != 1 || told[0] != "spec.updateStrategy.rollingUpdate.maxUnavailable: dropped, the gate MaxUnavailableStatefulSet is off" {
		t.Errorf("told of %q", told)
	}
	s := New(Options{})
	for _, step := range []struct {
		verb string
		do   func() (kind.Object, error)
	}{
		{"create", func() (kind.Object, error) { return s.Create(t0, limited) }},
		{"delete", func() (kind.Object, error) {
			return s.Delete(t0, kinds.StatefulSet, "default", "db", metav1.DeleteOptions{})
		}},
		{"apply a new one", func() (kind.Object, error) { return s.Apply(t0, limited) }},
		{"apply again", func() (kind.Object, error) { return s.Apply(t0, limited) }},
		{"update", func() (kind.Object, error) { return s.Update(t0, limited, "") }},
		{"patch", func() (kind.Object, error) {
			return s.Patch(t0, kinds.StatefulSet, "default", "db", types.MergePatchType, []byte(`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"50%"}}}}`), "")
		}},
	} {
		got, err := step.do()
		if err != nil {
			t.Fatalf("%s: %v", step.verb, err)
		}
		if set := got.(*appsv1.StatefulSet); set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil || *set.Spec.UpdateStrategy.RollingUpdate.Partition != 1 || set.Generation != 1 {
			t.Errorf("%s: %+v, generation %d", step.verb, set.Spec.UpdateStrategy.RollingUpdate, set.Generation)
		}
	}
}
