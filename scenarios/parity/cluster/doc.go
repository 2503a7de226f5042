// Package cluster replays recordings of the real control plane on a simulated cluster and compares
// what the two showed: the statuses of workloads, pods and where they went, nodes, endpoint slices,
// events, answers and timing.
//
// A recording names nodes, actions (objects created, patched, deleted; nodes that fall silent) and
// what watches of the real API then saw in one or two runs. [Case.Replay] does the same actions on
// virtual time. Its nodes are whole simulated kubelets, as every simulated node is: what the recorded
// nodes did with a pod is stated by annotations of the pod (hollow/...), which here become programs
// of its containers. A replay reads the case's nodes, actions and times, never its runs and nothing
// of its name. [Judge] compares; its rules are those of judge_cluster.py with --kubelet, which a test
// holds it to.
//
// case.go reads a recording. replay.go sets the cluster up, actions.go does the actions, programs.go
// says what containers do. observe.go watches, with objects.go for what is seen of each kind and
// names.go for what stands for generated names. judge.go compares, with a file for each aspect.
package cluster
