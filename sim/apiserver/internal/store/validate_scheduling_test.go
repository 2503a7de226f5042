package store

import (
	"testing"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func TestValidateScheduling(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {rev: '1'}}\nspec: {containers: [{name: a, image: x}], "
	spread := func(s string) string { return "topologySpreadConstraints: [" + s + "]}" }
	affinity := func(s string) string {
		return "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + s + "]}}}"
	}
	const term = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	for _, tc := range []struct{ name, spec, want string }{
		{"skew", spread("{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}"), "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
		{"key of a constraint", spread("{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}"), "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"},
		{"action", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: Never}"), `spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"`},
		{"repeated", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}"),
			`spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"`},
		{"the same key, another action", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}"), ""},
		{"domains", spread("{maxSkew: 1, minDomains: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}"), "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero"},
		{"soft domains", spread("{maxSkew: 1, minDomains: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}"), "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
		{"policy", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Never}"), `spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Never": supported values: "Honor", "Ignore"`},
		{"policy of affinity", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Never}"), `spec.topologySpreadConstraints[0].nodeAffinityPolicy: Unsupported value: "Never": supported values: "Honor", "Ignore"`},
		{"selector", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: In}]}}"), "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"label keys without a selector", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev]}"), "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"},
		{"label keys", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev, other], labelSelector: {}}"), ""},
		{"a label key that is selected", spread("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev], labelSelector: {matchLabels: {rev: '1'}}}"), `spec.topologySpreadConstraints[0][0]: Invalid value: "rev": exists in both matchLabelKeys and labelSelector`},
		{"key of a term", affinity("{labelSelector: {}}"), term + ".topologyKey: Required value: can not be empty"},
		{"bad key of a term", affinity("{topologyKey: 'a b'}"), term + `.topologyKey: Invalid value: "a b": name part must consist`},
		{"both label keys", affinity("{topologyKey: z, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]}"), term + `.matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys`},
		{"selector of a term", affinity("{topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}"), term + ".labelSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		{"namespaces", affinity("{topologyKey: z, namespaces: [A]}"), term + `.namespace: Invalid value: "A": a lowercase RFC 1123 label`},
		{"namespace selector", affinity("{topologyKey: z, namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}}"), term + `.namespaceSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		{"no weight", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {topologyKey: z}}]}}}",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"},
		{"weight", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: z}}]}}}",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"},
		{"preferred term", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {}}]}}}",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Required value"},
		{"gate", "schedulingGates: [{name: 'a b'}]}", `spec.schedulingGates[0]: Invalid value: "a b": name part must consist`},
		{"gate twice", "schedulingGates: [{name: a}, {name: a}]}", `spec.schedulingGates[1]: Duplicate value: "a"`},
		{"preemption policy", "preemptionPolicy: Sometimes}", `PreemptionPolicy (Sometimes) must not be provided in pod spec`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			obj, err := kinds.New(features.Gates{}).Decode([]byte(head + tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(Options{}).Create(t0, obj)
			check(t, err, tc.want)
		})
	}
}

// TestValidateWithoutAdmission: of a pod on its way to the API admission has made
// sure of these fields, but static pods and manifests of scenarios bring their own.
func TestValidateWithoutAdmission(t *testing.T) {
	for _, tc := range []struct{ spec, want string }{
		{"overhead: {cpu: 250m, memory: 1Mi}", ""},
		{"overhead: {memory: -1}", `spec.overhead.limits[memory]: Invalid value: "-1": must be greater than or equal to 0`},
		{"overhead: {gpu: 1}", `spec.overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource`},
		{"preemptionPolicy: Never", ""},
		{"preemptionPolicy: Sometimes", `spec.preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"`},
	} {
		obj, err := kinds.New(features.Gates{}).Decode([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: x}], " + tc.spec + "}"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, kinds.New(features.Gates{}).Validate(obj), tc.want)
	}
}
