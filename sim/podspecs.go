package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
)

// This file is what a node's runtime asks of pods' manifests, which the CRI doesn't tell,
// and what it has to say of them.

// UnknownImage begins the object of a warning that nobody knows what an image runs.
const UnknownImage = "image "

// unknownImage records that nobody knows what an image runs.
func (n *Node) unknownImage(image string) {
	n.rec.Record(trace.KindWarning, UnknownImage+image, "nobody knows what the image "+image+" runs")
}

// nonRoot returns the images of a pod that are to have a user other than root: those of containers
// with runAsNonRoot and without a user of their own.
func (n *Node) nonRoot(md *runtimeapi.PodSandboxMetadata) (images []string) {
	if n.kubelet == nil {
		return nil
	}
	pod := n.kubelet.Pod(types.UID(md.Uid))
	if pod == nil {
		return nil
	}
	var all v1.PodSecurityContext
	if pod.Spec.SecurityContext != nil {
		all = *pod.Spec.SecurityContext
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			nonRoot, user := all.RunAsNonRoot, all.RunAsUser
			if sc := c.SecurityContext; sc != nil {
				nonRoot, user = cmp.Or(sc.RunAsNonRoot, nonRoot), cmp.Or(sc.RunAsUser, user)
			}
			if nonRoot != nil && *nonRoot && user == nil {
				images = append(images, c.Image)
			}
		}
	}
	return images
}

// ends reports whether a container is one that its pod doesn't restart when it ends well:
// an ordinary init container, or one of a pod with another restartPolicy than Always.
func (n *Node) ends(md *runtimeapi.PodSandboxMetadata, container string) bool {
	if n.kubelet == nil {
		return false
	}
	pod := n.kubelet.Pod(types.UID(md.Uid))
	if pod == nil {
		return false
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == container {
			return c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		switch {
		case c.Name != container:
		case c.RestartPolicy != nil:
			return *c.RestartPolicy != v1.ContainerRestartPolicyAlways
		default:
			return pod.Spec.RestartPolicy == v1.RestartPolicyNever || pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure
		}
	}
	return false
}

// execs reports whether probes or hooks of a pod run commands in one of its containers.
func (n *Node) execs(md *runtimeapi.PodSandboxMetadata, container string) bool {
	if n.kubelet == nil {
		return false
	}
	pod := n.kubelet.Pod(types.UID(md.Uid))
	if pod == nil {
		return false
	}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if c := &list[i]; c.Name == container {
				return runsCommands(c)
			}
		}
	}
	return false
}

func runsCommands(c *v1.Container) bool {
	for _, p := range [...]*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil && p.Exec != nil {
			return true
		}
	}
	if l := c.Lifecycle; l != nil {
		for _, h := range [...]*v1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil && h.Exec != nil {
				return true
			}
		}
	}
	return false
}

// Once begins the object of a warning that is said once for all with that object, of
// whichever pod it is.
const Once = "once "

// warnOnce records a warning, once of each key on this node.
func (n *Node) warnOnce(key, text string) {
	if n.told[key] {
		return
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[key] = true
	n.rec.Record(trace.KindWarning, Once+key, text)
}

// OfWorkload begins the object of a warning about a container of one of many pods that are alike.
// Fields of the record have the workload, the container and its image, and what to say of them.
const OfWorkload = "workload "

// warnOfPod records a warning about a container.
func (n *Node) warnOfPod(md *runtimeapi.PodSandboxMetadata, container, image, text string) {
	whole := fmt.Sprintf("container %s of pod %s/%s, image %s: %s", container, md.Namespace, md.Name, image, text)
	var pod *v1.Pod
	if n.kubelet != nil {
		pod = n.kubelet.Pod(types.UID(md.Uid))
	}
	w := workloadOf(pod)
	if w == (Workload{}) {
		n.warn(whole)
		return
	}
	n.rec.Record(trace.KindWarning, OfWorkload+w.String(), whole, trace.Str("container", container), trace.Str("image", image), trace.Str("text", text))
}

// workloadOf is a pod's workload as far as the pod says it; nobody if it has none.
func workloadOf(pod *v1.Pod) Workload {
	if pod == nil {
		return Workload{}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return Workload{}
	}
	w := Workload{owner.Kind, pod.Namespace + "/" + owner.Name}
	// A Deployment's ReplicaSets are named after it and the hash of their template.
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(w.Name, "-"+hash); ok {
			w = Workload{"Deployment", name}
		}
	}
	return w
}

// unserved warns of probes and hooks that can't succeed, since nothing in their pod ever
// serves their port. While containers of it are missing, one of them may.
func (n *Node) unserved(u fakecri.Unserved) {
	if n.kubelet == nil {
		return
	}
	pod := n.kubelet.Pod(types.UID(u.UID))
	if pod == nil || u.Running < lasting(pod) {
		return
	}
	var who []string
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == u.Container {
				who = asking(&list[i], u.Port)
			}
		}
	}
	if len(who) == 0 {
		return
	}
	serves := "nothing"
	if len(u.Serves) > 0 {
		serves = strings.Trim(fmt.Sprint(u.Serves), "[]")
	}
	n.warnOnce(fmt.Sprintf("probe %s %s %d", u.Image, u.Container, u.Port), fmt.Sprintf(
		"container %s of pod %s/%s, image %s: its %s can't succeed: nothing in the pod serves port %d (served: %s). Correct the port, or state what serves it under programs: {match: {container: %s}, ports: [{port: %d}]}",
		u.Container, u.Namespace, u.Pod, u.Image, strings.Join(who, " and "), u.Port, serves, u.Container, u.Port))
}

// lasting is how many containers of a pod run side by side once it has started: its own and
// its sidecars.
func lasting(pod *v1.Pod) int {
	n := len(pod.Spec.Containers)
	for i := range pod.Spec.InitContainers {
		if p := pod.Spec.InitContainers[i].RestartPolicy; p != nil && *p == v1.ContainerRestartPolicyAlways {
			n++
		}
	}
	return n
}

// asking names the probes and hooks of a container that ask a port.
func asking(c *v1.Container, port int) []string {
	var out []string
	number := func(p intstr.IntOrString) int {
		if p.Type == intstr.Int {
			return p.IntValue()
		}
		i := slices.IndexFunc(c.Ports, func(o v1.ContainerPort) bool { return o.Name == p.StrVal })
		if i < 0 {
			return 0
		}
		return int(c.Ports[i].ContainerPort)
	}
	for _, x := range [...]struct {
		name  string
		probe *v1.Probe
	}{{"startup probe", c.StartupProbe}, {"readiness probe", c.ReadinessProbe}, {"liveness probe", c.LivenessProbe}} {
		switch p := x.probe; {
		case p == nil:
		case p.HTTPGet != nil && number(p.HTTPGet.Port) == port, p.TCPSocket != nil && number(p.TCPSocket.Port) == port, p.GRPC != nil && int(p.GRPC.Port) == port:
			out = append(out, x.name)
		}
	}
	if l := c.Lifecycle; l != nil {
		if l.PostStart != nil && l.PostStart.HTTPGet != nil && number(l.PostStart.HTTPGet.Port) == port {
			out = append(out, "postStart hook")
		}
		if l.PreStop != nil && l.PreStop.HTTPGet != nil && number(l.PreStop.HTTPGet.Port) == port {
			out = append(out, "preStop hook")
		}
	}
	return out
}
