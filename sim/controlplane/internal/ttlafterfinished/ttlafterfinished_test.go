package ttlafterfinished

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

func TestTTL(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("ttl-after-finished-controller", -1, 0)})
	deleted := map[string]time.Duration{}
	srv.OnChange(func(ch apiserver.Change) {
		if ch.Kind == apiserver.KindJob && ch.New.GetDeletionTimestamp() != nil && deleted[ch.New.GetName()] == 0 {
			deleted[ch.New.GetName()] = l.Since(loop.Epoch()).Truncate(time.Second)
		}
	})
	secs := func(n int32) *int32 { return &n }
	for _, j := range []struct {
		name string
		ttl  *int32
		end  batchv1.JobConditionType
	}{{"completed", secs(60), batchv1.JobComplete}, {"failed", secs(0), batchv1.JobFailed}, {"forever", nil, batchv1.JobComplete}, {"running", secs(1), ""}, {"given-more-time", secs(60), batchv1.JobComplete}} {
		made, err := srv.Create(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: j.name}, Spec: batchv1.JobSpec{TTLSecondsAfterFinished: j.ttl,
			Template: v1.PodTemplateSpec{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if j.end == "" {
			continue
		}
		l.Root().At(loop.Epoch().Add(10*time.Second), func() {
			job := made.DeepCopyObject().(*batchv1.Job)
			now := metav1.Time{Time: l.Now()}
			criterion := batchv1.JobSuccessCriteriaMet
			if j.end == batchv1.JobFailed {
				criterion = batchv1.JobFailureTarget
			} else {
				job.Status.CompletionTime = &now
			}
			job.Status.StartTime = &now
			job.Status.Conditions = []batchv1.JobCondition{{Type: criterion, Status: v1.ConditionTrue, LastTransitionTime: now}, {Type: j.end, Status: v1.ConditionTrue, LastTransitionTime: now}}
			if _, err := srv.Update(job, "status"); err != nil {
				t.Error(err)
			}
		})
	}
	l.Root().At(loop.Epoch().Add(30*time.Second), func() {
		job := srv.Store().Lookup(apiserver.KindJob, "default", "given-more-time").DeepCopyObject().(*batchv1.Job)
		job.Spec.TTLSecondsAfterFinished = secs(100)
		if _, err := srv.Update(job, ""); err != nil {
			t.Error(err)
		}
	})
	if err := l.RunUntil(loop.Epoch().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"completed": 70 * time.Second, "failed": 10 * time.Second, "given-more-time": 110 * time.Second}
	for _, name := range []string{"completed", "failed", "forever", "running", "given-more-time"} {
		if deleted[name] != want[name] {
			t.Errorf("%s was deleted at %v, want %v", name, deleted[name], want[name])
		}
	}
}

// TestExpiry: a job's time to live begins when it completes or fails.
func TestExpiry(t *testing.T) {
	ended := metav1.Unix(1000, 0)
	condition := func(typ batchv1.JobConditionType, status v1.ConditionStatus, at int64) batchv1.JobCondition {
		return batchv1.JobCondition{Type: typ, Status: status, LastTransitionTime: metav1.Unix(at, 0)}
	}
	for _, tc := range []struct {
		name       string
		ttl        *int32
		conditions []batchv1.JobCondition
		ok         bool
	}{
		{"completed", new(int32(5)), []batchv1.JobCondition{condition(batchv1.JobComplete, v1.ConditionTrue, 1000)}, true},
		{"failed", new(int32(5)), []batchv1.JobCondition{condition(batchv1.JobFailureTarget, v1.ConditionTrue, 900), condition(batchv1.JobFailed, v1.ConditionTrue, 1000)}, true},
		{"resumed and completed", new(int32(5)), []batchv1.JobCondition{condition(batchv1.JobSuspended, v1.ConditionFalse, 900), condition(batchv1.JobComplete, v1.ConditionTrue, 1000)}, true},
		{"suspended", new(int32(5)), []batchv1.JobCondition{condition(batchv1.JobSuspended, v1.ConditionTrue, 1000)}, false},
		{"not completed", new(int32(5)), []batchv1.JobCondition{condition(batchv1.JobComplete, v1.ConditionFalse, 1000)}, false},
		{"runs", new(int32(5)), nil, false},
		{"for ever", nil, []batchv1.JobCondition{condition(batchv1.JobComplete, v1.ConditionTrue, 1000)}, false},
	} {
		job := &batchv1.Job{Spec: batchv1.JobSpec{TTLSecondsAfterFinished: tc.ttl}, Status: batchv1.JobStatus{Conditions: tc.conditions}}
		at, ok := expiry(job)
		if ok != tc.ok || ok && !at.Equal(ended.Add(5*time.Second)) {
			t.Errorf("%s: %v, %v", tc.name, at, ok)
		}
	}
}
