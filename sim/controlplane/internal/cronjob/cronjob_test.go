package cronjob

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// TestPredecessor holds that a CronJob sees the jobs of whoever had its name: it tells of those that
// run, takes the last success from them, and deletes those beyond its limits.
func TestPredecessor(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("cronjob-controller", -1, 0), Indexes: controller.NewIndexes(srv)})
	spec := batchv1.JobSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}}
	ok := func(o apiserver.Object, err error) apiserver.Object {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	job := func(name, owner string, uid types.UID, finished time.Duration) {
		yes := true
		j := ok(srv.Create(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "CronJob", Name: owner, UID: uid, Controller: &yes}}}, Spec: spec})).DeepCopyObject().(*batchv1.Job)
		if finished == 0 {
			return
		}
		at := metav1.Time{Time: loop.Epoch().Add(finished)}
		start := metav1.Time{Time: loop.Epoch()}
		j.Status.StartTime, j.Status.CompletionTime = &start, &at
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: v1.ConditionTrue}, {Type: batchv1.JobComplete, Status: v1.ConditionTrue}}
		ok(srv.Update(j, "status"))
	}
	job("old-1", "nightly", "before", time.Second)
	job("old-2", "nightly", "before", 2*time.Second)
	job("old-3", "nightly", "before", 0)
	job("other", "hourly", "other", 0)
	keep := int32(1)
	ok(srv.Create(&batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 3 * * *", SuccessfulJobsHistoryLimit: &keep, JobTemplate: batchv1.JobTemplateSpec{Spec: spec}}}))
	if err := l.RunUntil(loop.Epoch().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range srv.Events() {
		said = append(said, e.Reason+": "+e.Message)
	}
	for _, want := range []string{"UnexpectedJob: Saw a job that the controller did not create or forgot: old-3", "SuccessfulDelete: Deleted job old-1"} {
		if !slices.Contains(said, want) {
			t.Errorf("no event %q among %q", want, said)
		}
	}
	if slices.ContainsFunc(said, func(s string) bool {
		return s == "UnexpectedJob: Saw a job that the controller did not create or forgot: other"
	}) {
		t.Error("a job of another name was seen")
	}
	cj := srv.Store().Lookup(apiserver.KindCronJob, "default", "nightly").(*batchv1.CronJob)
	if at := cj.Status.LastSuccessfulTime; at == nil || !at.Time.Equal(loop.Epoch().Add(2*time.Second)) {
		t.Errorf("the last success was at %v", at)
	}
}
