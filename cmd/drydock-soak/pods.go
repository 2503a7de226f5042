//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kind is what should become of a pod's containers. Each kind is checked
// differently: what runs must never be restarted, what restarts must go on, what
// completes must stop at a known count.
type kind int

const (
	runs      kind = iota // every container runs, and never anew
	restarts              // main ends over and over, and is started again
	completes             // main ends for good, after a known number of runs
)

// soakPod is one static pod. One pod is one thing that a kubelet may get wrong
// when it is killed: probes, volumes, hooks, init containers, back-off, logs. Names are short and
// without dashes, so that a pod's name can be told from the suffix of the node.
type soakPod struct {
	name string
	kind kind
	// last is the attempt of main's last run, of a pod that completes.
	last uint32
	// containers are those that run, of a pod that runs.
	containers []string
	spec       string
}

// volumesSpec is of the pod that reports whether its volumes have what they
// should. Its main container ends with the reason in its termination message, so that a failure
// says which volume.
const volumesSpec = `
  containers:
  - name: main
    image: IMAGE
    env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    command:
    - sh
    - -c
    - |
      fail() { echo "$1" > /dev/termination-log; exit 1; }
      grep -q ' /mem tmpfs ' /proc/mounts || fail 'the memory volume is no tmpfs'
      [ "$(cat /info/name)" = "$NAME" ] || fail 'downward API: name'
      grep -q 'soak="yes"' /info/labels || fail 'downward API: labels'
      echo host > /host/volumes || fail 'the host path'
      [ "$(cat /sub/file)" = sub ] || fail 'subPath'
      grep -q 10.96.0.10 /etc/resolv.conf || fail '/etc/resolv.conf'
      [ "$(cat /one)" = sub ] && mkdir /made/it || fail 'a file as subPath, or one that was made'
      grep -q "$NAME" /etc/hosts || fail '/etc/hosts'
      while true; do date +%s > /mem/now || fail 'the memory volume'; cp /mem/now /disk/now; sleep 1; done
    resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {memory: 64Mi}}
    volumeMounts:
    - {name: disk, mountPath: /disk}
    - {name: mem, mountPath: /mem}
    - {name: info, mountPath: /info}
    - {name: host, mountPath: /host}
    - {name: host, mountPath: /sub, subPath: sub}
    - {name: host, mountPath: /one, subPath: sub/file}
    - {name: disk, mountPath: /made, subPath: made/deep}
  - name: reader
    image: IMAGE
    command: [sh, -c, "while true; do sleep 5; [ $(($(date +%s) - $(cat /disk/now))) -lt 60 ] || exit 1; done"]
    securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}
    volumeMounts: [{name: disk, mountPath: /disk}]
  volumes:
  - {name: disk, emptyDir: {sizeLimit: 10Mi}}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 4Mi}}
  - {name: host, hostPath: {path: HOST, type: Directory}}
  - name: info
    downwardAPI: # a projected volume needs an API, also with a downwardAPI source alone
      items:
      - {path: name, fieldRef: {fieldPath: metadata.name}}
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}`

// initSpec is of the pod that has what a sidecar and two init containers leave in
// order. The order is that of KEP-753: a sidecar is started in its turn, and the next init
// container waits for its startup probe.
const initSpec = `
  initContainers:
  - {name: first, image: IMAGE, command: [sh, -c, "echo first > /data/order"], volumeMounts: [{name: data, mountPath: /data}]}
  - name: sidecar
    image: IMAGE
    restartPolicy: Always
    command: [sh, -c, "echo sidecar >> /data/order; trap 'exit 0' TERM; while true; do sleep 1; done"]
    startupProbe: {exec: {command: [grep, sidecar, /data/order]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  - {name: second, image: IMAGE, command: [sh, -c, "echo second >> /data/order"], volumeMounts: [{name: data, mountPath: /data}]}
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "[ \"$(echo $(cat /data/order))\" = 'first sidecar second' ] || exit 1; while true; do sleep 1; done"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]`

// pods are the static pods, for an image with busybox's commands and a folder of
// the host. Between them they use what a kubelet keeps in memory only: probes'
// counters, back-off, hooks under way, mounts, the position in a log. IMAGE and HOST stand for
// what is known at run time only.
func pods(image, host string) []soakPod {
	list := []soakPod{
		{name: "crash", kind: restarts, spec: `
  containers:
  - {name: main, image: IMAGE, command: [sh, -c, "echo run; sleep 2; exit 3"]}`},
		{name: "liveness", kind: restarts, spec: `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "touch /tmp/ok; sleep 10; rm /tmp/ok; sleep 3600"]
    livenessProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 2, failureThreshold: 2}`},
		{name: "never", kind: completes, spec: `
  restartPolicy: Never
  containers:
  - {name: main, image: IMAGE, command: [sh, -c, "echo done > /dev/termination-log; sleep 3"]}`},
		{name: "onfailure", kind: completes, last: 2, spec: `
  restartPolicy: OnFailure
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "echo x >> /data/runs; [ $(wc -l < /data/runs) -ge 3 ]"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]`},
		{name: "exec", containers: []string{"main"}, spec: `
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "sleep 1; touch /tmp/started; echo live > /tmp/live; while true; do echo a line of a log that becomes long enough to be rotated; sleep 0.2; done"]
    startupProbe: {exec: {command: [cat, /tmp/started]}, periodSeconds: 1, failureThreshold: 30}
    livenessProbe: {exec: {command: [sh, -c, "grep live /tmp/live"]}, periodSeconds: 2, timeoutSeconds: 10, failureThreshold: 5}
    readinessProbe: {exec: {command: [sh, -c, "[ $(($(date +%s) / 10 % 2)) = 0 ]"]}, periodSeconds: 2, timeoutSeconds: 10}`},
		{name: "http", containers: []string{"main"}, spec: `
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "mkdir -p /tmp/www; echo ok > /tmp/www/ok; exec httpd -f -p 8080 -h /tmp/www"]
    ports: [{name: web, containerPort: 8080}]
    resources: {limits: {cpu: 100m, memory: 32Mi}}
    livenessProbe: {httpGet: {path: /ok, port: web}, periodSeconds: 2, timeoutSeconds: 10, failureThreshold: 5}
    readinessProbe: {httpGet: {path: /ok, port: 8080}, periodSeconds: 2, timeoutSeconds: 10}`},
		{name: "tcp", containers: []string{"main"}, spec: `
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "exec httpd -f -p 9090 -h /tmp"]
    livenessProbe: {tcpSocket: {port: 9090}, periodSeconds: 2, timeoutSeconds: 10, failureThreshold: 5}`},
		{name: "hooks", containers: []string{"main"}, spec: `
  terminationGracePeriodSeconds: 10
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "sleep 1; [ -e /tmp/hook ] || exit 1; while true; do sleep 1; done"]
    volumeMounts: [{name: host, mountPath: /host}]
    lifecycle:
      postStart: {exec: {command: [sh, -c, "touch /tmp/hook; echo started >> /host/hooks"]}}
      preStop: {exec: {command: [sh, -c, "echo stopping >> /host/hooks"]}}
  volumes: [{name: host, hostPath: {path: HOST, type: DirectoryOrCreate}}]`},
		{name: "init", containers: []string{"main", "sidecar"}, spec: initSpec},
		{name: "volumes", containers: []string{"main", "reader"}, spec: volumesSpec},
	}
	for i := range list {
		list[i].spec = strings.NewReplacer("IMAGE", image, "HOST", host).Replace(list[i].spec)
	}
	return list
}

// writeManifests writes the pods' manifests into a folder, and what they find on
// the host. All are there before the kubelet starts, as on a machine that boots. A short grace
// period keeps the removal at the end short.
func writeManifests(list []soakPod, dir, host string) error {
	if err := os.MkdirAll(filepath.Join(host, "sub"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(host, "sub", "file"), []byte("sub\n"), 0o644); err != nil {
		return err
	}
	for _, p := range list {
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  labels: {soak: \"yes\"}\nspec:%s\n", p.name, p.spec)
		if !strings.Contains(text, "terminationGracePeriodSeconds") {
			text += "  terminationGracePeriodSeconds: 2\n"
		}
		if err := os.WriteFile(filepath.Join(dir, p.name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
