package kuberuntime

import (
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// The labels and annotations by which the kubelet knows its sandboxes and
// containers in the runtime (upstream pkg/kubelet/types, kuberuntime/labels.go).
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"

	annotationHash              = "io.kubernetes.container.hash"
	annotationRestartCount      = "io.kubernetes.container.restartCount"
	annotationTerminationPath   = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationPolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationPreStop           = "io.kubernetes.container.preStopHandler"
	annotationPorts             = "io.kubernetes.container.ports"
	annotationPodDeletionGrace  = "io.kubernetes.pod.deletionGracePeriod"
	annotationPodGrace          = "io.kubernetes.pod.terminationGracePeriod"
)

// podLabels are a sandbox's labels: the pod's and three of the kubelet's.
func podLabels(own map[string]string, pod *runtimeapi.PodSandboxMetadata) map[string]string {
	labels := make(map[string]string, len(own)+3)
	maps.Copy(labels, own)
	labels[labelPodName] = pod.Name
	labels[labelPodNamespace] = pod.Namespace
	labels[labelPodUID] = pod.Uid
	return labels
}

// containerLabels are by what the kubelet finds its containers again after a
// restart.
func containerLabels(pod *v1.Pod, c *v1.Container) map[string]string {
	return map[string]string{
		labelPodName:       pod.Name,
		labelPodNamespace:  pod.Namespace,
		labelPodUID:        string(pod.UID),
		labelContainerName: c.Name,
	}
}

// OfContainer says whose container the labels are of.
func OfContainer(labels map[string]string) (pod types.UID, container string) {
	return types.UID(labels[labelPodUID]), labels[labelContainerName]
}

// containerAnnotations are shared by the containers of replicas.
// Only while a pod is being deleted they differ from one replica to the next.
func (s *shared) containerAnnotations(h *kubecontainer.Hasher, pod *v1.Pod, c *v1.Container, restartCount int) (map[string]string, error) {
	if pod.DeletionGracePeriodSeconds != nil {
		return newContainerAnnotations(h, pod, c, restartCount)
	}
	k := annotationsKey{c, restartCount, pod.Spec.TerminationGracePeriodSeconds}
	if a, ok := s.annotations.get(k); ok {
		return a, nil
	}
	a, err := newContainerAnnotations(h, pod, c, restartCount)
	if err == nil {
		s.annotations.put(k, a)
	}
	return a, err
}

// The grace periods and the hook are there for a kubelet that has to kill the
// container and doesn't know its pod any more; see podOf.
func newContainerAnnotations(h *kubecontainer.Hasher, pod *v1.Pod, c *v1.Container, restartCount int) (map[string]string, error) {
	a := map[string]string{
		annotationHash:              h.Hash(c),
		annotationRestartCount:      decimal(restartCount),
		annotationTerminationPath:   c.TerminationMessagePath,
		annotationTerminationPolicy: string(c.TerminationMessagePolicy),
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		a[annotationPodDeletionGrace] = strconv.FormatInt(*s, 10)
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[annotationPodGrace] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		text, err := marshal(c.Lifecycle.PreStop)
		if err != nil {
			return nil, err
		}
		a[annotationPreStop] = text
	}
	if len(c.Ports) > 0 {
		text, err := marshal(c.Ports)
		if err != nil {
			return nil, err
		}
		a[annotationPorts] = text
	}
	return a, nil
}

// podOf makes a pod of what is annotated on a container, for a kill when
// nobody knows the pod any more.
// It has what a kill reads: names, grace periods, the termination message's
// path.
func podOf(name string, labels, annotations map[string]string) *v1.Pod {
	p := &kubecontainer.Pod{
		ID:         uid(labels[labelPodUID]),
		Name:       labels[labelPodName],
		Namespace:  labels[labelPodNamespace],
		Containers: []*kubecontainer.Container{{Name: name}},
	}
	pod := p.ToAPIPod()
	pod.DeletionGracePeriodSeconds = seconds(annotations[annotationPodDeletionGrace])
	pod.Spec.TerminationGracePeriodSeconds = seconds(annotations[annotationPodGrace])
	pod.Spec.Containers[0].TerminationMessagePath = annotations[annotationTerminationPath]
	return pod
}

// seconds is an annotated number; nil if there is none, or it is malformed.
func seconds(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
