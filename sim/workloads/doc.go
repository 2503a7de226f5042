// Package workloads holds the control plane to what its users rely on, over random clusters: its
// test draws nodes, workloads of all kinds and what happens to them, lets all come to rest, and
// judges what is there by an oracle of its own.
//
// plan_test.go draws a cluster and what happens, workload_test.go the workloads, act_test.go the
// acts; random_test.go runs plans, and makes one that fails smaller. watch_test.go judges each
// change as it comes: bindings, evictions, quotas, jobs of CronJobs. rest_test.go judges what is
// at rest. oracle_test.go says where a pod may be, and why it is nowhere: it knows nothing of the
// scheduler's code.
package workloads
