// Package logs reads containers' logs and keeps them from growing without
// bounds. It mirrors upstream's pkg/kubelet/logs (the container log manager)
// and to k8s.io/cri-client/pkg/logs (the format and reading it).
package logs
