package controlplane

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/cronjob"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/daemon"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/deployment"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/job"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/replicaset"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/statefulset"
)

// startWorkloads starts what looks after Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs.
func (c *ControlPlane) startWorkloads(srv *apiserver.Server) {
	on := func(names ...string) bool {
		for _, n := range names {
			if c.opts.Enabled(n) {
				return true
			}
		}
		return false
	}
	if !on(Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob) {
		return
	}
	pods := controller.NewPods(srv)
	sets := controller.NewOwned[*appsv1.ReplicaSet](srv, apiserver.KindReplicaSet)
	if on(ReplicaSet) {
		c.keep(ControllerManager, replicaset.New(replicaset.Options{Group: c.manager, API: c.component(srv, ReplicaSet), Pods: pods, ReplicaSets: sets}))
	}
	if on(Deployment) {
		c.keep(ControllerManager, deployment.New(deployment.Options{Group: c.manager, API: c.component(srv, Deployment), Pods: pods, ReplicaSets: sets}))
	}
	revisions := controller.NewOwned[*appsv1.ControllerRevision](srv, apiserver.KindControllerRevision)
	if on(StatefulSet) {
		c.keep(ControllerManager, statefulset.New(statefulset.Options{Group: c.manager, API: c.component(srv, StatefulSet), Pods: pods, Revisions: revisions}))
	}
	if on(DaemonSet) {
		c.keep(ControllerManager, daemon.New(daemon.Options{Group: c.manager, API: c.component(srv, DaemonSet), Pods: pods, Revisions: revisions}))
	}
	if on(Job) {
		c.keep(ControllerManager, job.New(job.Options{Group: c.manager, API: c.component(srv, Job), Pods: pods}))
	}
	if on(CronJob) {
		jobs := controller.NewOwned[*batchv1.Job](srv, apiserver.KindJob)
		c.keep(ControllerManager, cronjob.New(cronjob.Options{Group: c.manager, API: c.component(srv, CronJob), Jobs: jobs}))
	}
}
