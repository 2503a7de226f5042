// Package matchers has Gomega matchers for results of scenarios, for suites of
// their users:
//
//	list, err := scenarios.Load("web.yaml", scenarios.LoadOptions{})
//	Expect(err).NotTo(HaveOccurred())
//	result, err := scenarios.Run(ctx, list[0], scenarios.RunOptions{})
//	Expect(err).NotTo(HaveOccurred())
//	Expect(result).To(Pass())
//	Expect(result).To(HavePodInPhase("default/web", v1.PodRunning))
//	Expect(result).To(HaveEvent("default/web", "Started"))
//	Expect(result).To(HaveReadyReplicas("deployment/default/web", 3))
//	Expect(result).To(HoldAtEnd(`pods("default").all(p, restarts("default/" + p.metadata.name) == 0)`))
package matchers

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// matcher is a matcher of results by a function that says what is wrong, or "".
type matcher struct {
	want  string
	check func(*scenarios.Result) string
	wrong string
}

func (m *matcher) Match(actual any) (bool, error) {
	r, ok := actual.(*scenarios.Result)
	if !ok || r == nil {
		return false, fmt.Errorf("expected a *scenarios.Result, got %T", actual)
	}
	m.wrong = m.check(r)
	return m.wrong == "", nil
}

func (m *matcher) FailureMessage(actual any) string {
	return fmt.Sprintf("expected scenario %s to %s, but\n%s", actual.(*scenarios.Result).Scenario, m.want, m.wrong)
}

func (m *matcher) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("expected scenario %s not to %s", actual.(*scenarios.Result).Scenario, m.want)
}

// Pass matches a result all of whose expectations held. Its message has each
// expectation that failed, with what led to it and how to repeat the run.
func Pass() types.GomegaMatcher {
	return &matcher{want: "pass", check: func(r *scenarios.Result) string {
		if r.Passed {
			return ""
		}
		var b strings.Builder
		r.WriteText(&b, true)
		return b.String()
	}}
}

// HavePodInPhase matches a result at whose end the pod "namespace/name" is in a
// phase.
func HavePodInPhase(pod string, phase v1.PodPhase) types.GomegaMatcher {
	return &matcher{want: fmt.Sprintf("end with pod %s %s", pod, phase), check: func(r *scenarios.Result) string {
		for _, p := range r.Final.Pods {
			if p.Namespace+"/"+p.Name != pod {
				continue
			}
			if p.Status.Phase != phase {
				return fmt.Sprintf("it is %s", p.Status.Phase)
			}
			return ""
		}
		return "there is no such pod"
	}}
}

// HaveEvent matches a result at whose end there is an event with a reason about
// the pod "namespace/name", or about the node of that name.
func HaveEvent(object, reason string) types.GomegaMatcher {
	return &matcher{want: fmt.Sprintf("have an event %s about %s", reason, object), check: func(r *scenarios.Result) string {
		var have []string
		for _, e := range r.Final.Events {
			name := e.InvolvedObject.Name
			if e.InvolvedObject.Kind == "Pod" {
				name = e.InvolvedObject.Namespace + "/" + name
			}
			if name != object {
				continue
			}
			if e.Reason == reason {
				return ""
			}
			have = append(have, e.Reason)
		}
		return fmt.Sprintf("there are only: %s", strings.Join(have, ", "))
	}}
}

// HoldAtEnd matches a result at whose end an expression in CEL is true; see result.Final.Judge for
// what it may ask. The message has the values of the expression's parts.
func HoldAtEnd(expr string) types.GomegaMatcher {
	return &matcher{want: "end with " + expr, check: func(r *scenarios.Result) string {
		v, err := r.Final.Judge(expr)
		if err != nil {
			return "it can't be judged: " + err.Error()
		}
		if v.Outcome == expect.Held {
			return ""
		}
		lines := []string{v.Reason}
		for _, x := range v.Values {
			lines = append(lines, x.Expr+" = "+x.Value)
		}
		return strings.Join(lines, "\n")
	}}
}

// readyFields are where workloads tell how many of their replicas are ready; of a Job, how many
// have completed.
var readyFields = map[string]string{
	"deployment": "readyReplicas", "replicaSet": "readyReplicas", "statefulSet": "readyReplicas", "daemonSet": "numberReady", "job": "succeeded",
}

// HaveReadyReplicas matches a result at whose end a workload, "deployment/default/web", has so many
// ready replicas; a Job so many that have completed.
func HaveReadyReplicas(workload string, n int) types.GomegaMatcher {
	kind, name, _ := strings.Cut(workload, "/")
	field, ok := readyFields[kind]
	if !ok {
		return &matcher{want: "have " + workload, check: func(*scenarios.Result) string {
			return fmt.Sprintf("%q is no workload such as deployment/default/web: the kinds are deployment, replicaSet, statefulSet, daemonSet and job", workload)
		}}
	}
	return HoldAtEnd(fmt.Sprintf("exists(%[1]s(%[2]q)) && %[1]s(%[2]q).status.%[3]s == %[4]d", kind, name, field, n))
}
