package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
)

// This file makes the random pods. A container's name begins with a letter
// that says what it does; see scripts and lifePrograms.

// scripts are what the interpreted containers run; the seconds of a sleep are
// put in.
var scripts = map[byte]string{
	't': "trap 'exit 0' TERM; touch /tmp/up; while true; do sleep 1; done",
	'i': "trap '' TERM; touch /tmp/up; while true; do sleep 5; done",
	's': "trap 'sleep 3; exit 3' TERM; touch /tmp/up; while :; do sleep 1; done",
	'e': "sleep %d; echo done > /dev/termination-log; exit 0",
	'c': "sleep %d; exit 1",
	'k': "sleep %d; kill -9 $$",
}

// steady are the letters of containers that run until they are stopped.
const steady = "tisfgh"

// lifePrograms are the stated ones.
var lifePrograms = []fakecri.Program{
	{Match: fakecri.Match{Container: "f*"}},
	{Match: fakecri.Match{Container: "g*"}, Behaviour: fakecri.Behaviour{OnTerm: fakecri.OnTerm{Ignore: true}}},
	{Match: fakecri.Match{Container: "h*"}, Behaviour: fakecri.Behaviour{OnTerm: fakecri.OnTerm{Exit: 2, After: fakecri.Range{Min: time.Second, Max: 9 * time.Second}}}},
	{Match: fakecri.Match{Container: "d*"}, Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Second, Max: 50 * time.Second}, ExitCodes: []int32{1, 0}}},
	{Match: fakecri.Match{Container: "z*"}, Behaviour: fakecri.Behaviour{StartError: "no such thing"}},
	{Match: fakecri.Match{Container: "m*"}, Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Second, Max: 20 * time.Second}, OOMKilled: true}},
}

// lifePod is a pod and what is known of its fate.
type lifePod struct {
	pod  *v1.Pod
	node string
	at   time.Duration
	// calm: nothing in its manifest keeps it from running, ready, for ever.
	calm bool
}

// maker draws pods.
type maker struct {
	*rand.Rand
	objects []string // names of configMaps and secrets that there will be
}

func (m *maker) one(of string) byte          { return of[m.IntN(len(of))] }
func (m *maker) chance(percent int) bool     { return m.IntN(100) < percent }
func (m *maker) between(lo, hi int) int      { return lo + m.IntN(hi-lo+1) }
func (m *maker) seconds(n int) time.Duration { return time.Duration(m.IntN(n*1000)) * time.Millisecond }

func (m *maker) container(letter byte, i int) v1.Container {
	c := v1.Container{Name: fmt.Sprintf("%c%d", letter, i), Image: "app:1"}
	if s, ok := scripts[letter]; ok {
		if strings.Contains(s, "%d") {
			s = fmt.Sprintf(s, m.between(0, 40))
		}
		c.Image, c.Command = "busybox:1", []string{"sh", "-c", s}
	}
	if m.chance(20) {
		c.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	}
	return c
}

func (m *maker) handler(c *v1.Container, good bool) v1.ProbeHandler {
	interpreted := c.Image == "busybox:1"
	switch {
	case interpreted && good:
		return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"test", "-f", "/tmp/up"}}}
	case interpreted && m.chance(50):
		return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "sleep 3; exit 1"}}}
	case !good:
		return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/no/such"}}, TCPSocket: nil}
	}
	port := intstr.FromInt32(8080)
	switch m.IntN(4) {
	case 0:
		return v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: port}}
	case 1:
		return v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: port}}
	case 2:
		return v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: 8080}}
	}
	return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}
}

func (m *maker) probe(c *v1.Container, good bool) *v1.Probe {
	if m.chance(60) {
		return nil
	}
	p := &v1.Probe{ProbeHandler: m.handler(c, good), InitialDelaySeconds: int32(m.IntN(3)), PeriodSeconds: int32(m.between(2, 10)),
		TimeoutSeconds: int32(m.between(1, 3)), FailureThreshold: int32(m.between(2, 4))}
	if p.Exec != nil {
		p.PeriodSeconds += 5 // each is a process or more
	}
	return p
}

// trimmings gives a container probes, hooks, resources and rules.
func (m *maker) trimmings(p *lifePod, c *v1.Container) {
	stays := strings.IndexByte(steady, c.Name[0]) >= 0
	if stays {
		good := m.chance(85)
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = m.probe(c, true), m.probe(c, good), m.probe(c, good)
		p.calm = p.calm && good
	} else {
		p.calm = false
	}
	if grace := int(*p.pod.Spec.TerminationGracePeriodSeconds); grace > 1 && m.chance(15) {
		c.Lifecycle = &v1.Lifecycle{}
		switch m.IntN(4) {
		case 0:
			c.Lifecycle.PostStart = &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(m.between(1, grace-1))}}
		case 1:
			c.Lifecycle.PostStart = &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "sleep 2; exit 1"}}}
			p.calm = false
		case 2:
			c.Lifecycle.PreStop = &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(m.between(1, grace-1))}}
		case 3:
			c.Lifecycle.PreStop = &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "sleep 4"}}}
		}
	}
	if m.chance(25) {
		c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(m.between(1, 6))*100, resource.DecimalSI)}
		if m.chance(50) {
			c.Resources.Limits = c.Resources.Requests
		}
		p.calm = false // it may not fit
	}
	if m.chance(8) {
		policy := v1.ContainerRestartPolicyNever
		c.RestartPolicy = &policy
		action := v1.ContainerRestartRuleActionRestart
		if m.chance(30) {
			action = v1.ContainerRestartRuleActionRestartAllContainers
		}
		c.RestartPolicyRules = []v1.ContainerRestartRule{{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1, 3, 137}}}}
		p.calm = false
	}
}

func (m *maker) volume(p *lifePod, i int) {
	name := func() string {
		if m.chance(10) {
			p.calm = false
			return "never"
		}
		return m.objects[m.IntN(len(m.objects))]
	}
	v := v1.Volume{Name: fmt.Sprint("v", i)}
	switch m.IntN(6) {
	case 0:
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	case 1:
		v.EmptyDir = &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}
	case 2:
		v.ConfigMap = &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name()}}
	case 3:
		v.Secret = &v1.SecretVolumeSource{SecretName: name()}
	case 4:
		v.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: name()}}},
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](600)}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		}}
	case 5:
		v.HostPath = &v1.HostPathVolumeSource{Path: "/srv/data", Type: ptr.To(v1.HostPathDirectoryOrCreate)}
	}
	p.pod.Spec.Volumes = append(p.pod.Spec.Volumes, v)
	c := &p.pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: v.Name, MountPath: "/mnt/" + v.Name})
}

// pod draws a pod; reach bounds when it is created.
func (m *maker) pod(name, node string) *lifePod {
	p := &lifePod{node: node, at: m.seconds(120), calm: true, pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}}}
	spec := &p.pod.Spec
	spec.NodeName = node
	spec.RestartPolicy = []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}[m.IntN(4)]
	p.calm = spec.RestartPolicy == v1.RestartPolicyAlways
	spec.TerminationGracePeriodSeconds = ptr.To(int64([]int{0, 1, 2, 5, 10, 30}[m.IntN(6)]))
	for i := range m.between(1, 3) {
		spec.Containers = append(spec.Containers, m.container(m.one("tttisffffghecdkzm"), i))
		m.trimmings(p, &spec.Containers[i])
	}
	if m.chance(35) {
		for i := range m.between(1, 3) {
			letter := m.one("eeeeec")
			sidecar := m.chance(40)
			if sidecar {
				letter = m.one("tfgc")
			}
			c := m.container(letter, 10+i)
			if sidecar {
				c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
				c.StartupProbe = m.probe(&c, letter != 'c')
			}
			p.calm = p.calm && (sidecar && letter != 'c' || !sidecar && letter == 'e')
			spec.InitContainers = append(spec.InitContainers, c)
		}
	}
	if m.chance(40) {
		for i := range m.between(1, 3) {
			m.volume(p, i)
		}
	}
	if m.chance(10) {
		spec.ActiveDeadlineSeconds = ptr.To(int64(m.between(1, 90)))
		p.calm = false
	}
	if m.chance(10) {
		spec.HostNetwork = true
	}
	if m.chance(10) {
		spec.ShareProcessNamespace = ptr.To(true)
		p.calm = false // /tmp/up and kill $$ are as they were, but pid 1 is not
	}
	if m.chance(10) {
		ref := v1.LocalObjectReference{Name: m.objects[m.IntN(len(m.objects))]}
		spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref}}}
	}
	return p
}
