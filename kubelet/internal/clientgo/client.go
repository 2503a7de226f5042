// Package clientgo is the Kubernetes API as a kubelet on a real machine sees
// it: kubelet.Client over client-go. Requests are awaited, so they run on
// goroutines and their tasks on the loop wait; watches are reflectors that post
// what they hear into the loop.
//
// As upstream's (cmd/kubelet/app/server.go, RunKubelet's dependencies) there
// are three connections: events and heartbeats are held up neither by other
// requests nor by each other.
package clientgo

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
)

// Client is one kubelet's connection to the API. Its methods are for tasks of
// its loop. Errors are apimachinery's StatusErrors, or *url.Error when no answer
// came.
type Client struct {
	l                       *loop.Loop
	main, events, heartbeat kubernetes.Interface
	// watches are the contexts of groups' watches; for use on the loop.
	watches map[*loop.Group]context.Context
}

var _ kubelet.Client = (*Client)(nil)

// New connects with what a kubeconfig says. Of the kubelet's configuration it
// takes kubeAPIQPS and kubeAPIBurst, eventRecordQPS and eventBurst, contentType,
// and the times that bound a heartbeat. No request is made.
func New(l *loop.Loop, cfg *rest.Config, kc *kubeletconfig.KubeletConfiguration) (*Client, error) {
	base := rest.CopyConfig(cfg)
	base.ContentType = kc.ContentType
	base.QPS, base.Burst = 50, int(kc.KubeAPIBurst)
	if kc.KubeAPIQPS != nil {
		base.QPS = float32(*kc.KubeAPIQPS)
	}
	events := rest.CopyConfig(base)
	events.QPS, events.Burst = 50, int(kc.EventBurst)
	if kc.EventRecordQPS != nil {
		events.QPS = float32(*kc.EventRecordQPS)
	}
	heartbeat := rest.CopyConfig(base)
	heartbeat.QPS = -1
	heartbeat.Timeout = kc.NodeStatusUpdateFrequency.Duration
	if lease := time.Duration(kc.NodeLeaseDurationSeconds) * time.Second; lease > 0 && lease < heartbeat.Timeout {
		heartbeat.Timeout = lease
	}
	c := &Client{l: l}
	for _, m := range []struct {
		name string
		cfg  *rest.Config
		set  *kubernetes.Interface
	}{{"kubelet", base, &c.main}, {"event", events, &c.events}, {"heartbeat", heartbeat, &c.heartbeat}} {
		cs, err := kubernetes.NewForConfig(rest.AddUserAgent(m.cfg, "kubelet"))
		if err != nil {
			return nil, fmt.Errorf("failed to initialize %s client: %w", m.name, err)
		}
		*m.set = cs
	}
	return c, nil
}

// NewForClients is New for clients that are there already.
func NewForClients(l *loop.Loop, main, events, heartbeat kubernetes.Interface) *Client {
	return &Client{l: l, main: main, events: events, heartbeat: heartbeat}
}

// GetPod asks the API server, not a cache.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Pod, error) {
		return c.main.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// CreatePod creates a mirror pod.
func (c *Client) CreatePod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Pod, error) {
		return c.main.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	})
}

// DeletePod deletes a pod as opts say.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error {
	return await(ctx, func(ctx context.Context) error {
		return c.main.CoreV1().Pods(namespace).Delete(ctx, name, opts)
	})
}

// PatchPodStatus sends the difference of two statuses for the pod with that
// UID, and returns the pod as it is then. Errors: NotFound; Conflict when the pod
// has another UID.
func (c *Client) PatchPodStatus(ctx context.Context, namespace, name string, uid types.UID, base, status *v1.PodStatus, _ *v1.Pod) (*v1.Pod, error) {
	patch, err := podStatusPatch(uid, base, status)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: status patch: %w", namespace, name, err)
	}
	return loop.Await(ctx, func(ctx context.Context) (*v1.Pod, error) {
		return c.main.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	})
}

// CreateNode registers the node.
func (c *Client) CreateNode(ctx context.Context, node *v1.Node) (*v1.Node, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Node, error) {
		return c.main.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	})
}

// GetNode goes over the heartbeat connection.
func (c *Client) GetNode(ctx context.Context, name string) (*v1.Node, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Node, error) {
		return c.heartbeat.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
}

// PatchNode sends what differs in labels, annotations and status. Spec is left
// alone.
func (c *Client) PatchNode(ctx context.Context, name string, base, node *v1.Node) (*v1.Node, error) {
	patch, err := nodeStatusPatch(base, node)
	if err != nil {
		return nil, fmt.Errorf("node %s: status patch: %w", name, err)
	}
	return loop.Await(ctx, func(ctx context.Context) (*v1.Node, error) {
		return c.heartbeat.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	})
}

// GetLease, CreateLease and UpdateLease go over the heartbeat connection.
func (c *Client) GetLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return loop.Await(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.heartbeat.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// CreateLease creates the node's lease.
func (c *Client) CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return loop.Await(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.heartbeat.CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	})
}

// UpdateLease renews the node's lease. Errors: Conflict.
func (c *Client) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return loop.Await(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.heartbeat.CoordinationV1().Leases(lease.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
	})
}

// CreateEvent writes an event over the connection for events.
func (c *Client) CreateEvent(ctx context.Context, event *v1.Event) (*v1.Event, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Event, error) {
		return c.events.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	})
}

// PatchEvent writes what an event that occurs again changes.
func (c *Client) PatchEvent(ctx context.Context, base, event *v1.Event) (*v1.Event, error) {
	patch, err := twoWayPatch(base, event, &v1.Event{})
	if err != nil {
		return nil, fmt.Errorf("event %s/%s: patch: %w", event.Namespace, event.Name, err)
	}
	return loop.Await(ctx, func(ctx context.Context) (*v1.Event, error) {
		return c.events.CoreV1().Events(event.Namespace).Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	})
}

// GetConfigMap asks the API server. Errors: NotFound.
func (c *Client) GetConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.ConfigMap, error) {
		return c.main.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// GetSecret asks the API server. Errors: NotFound.
func (c *Client) GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.Secret, error) {
		return c.main.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// GetResourceClaim asks the API server. Errors: NotFound.
func (c *Client) GetResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return loop.Await(ctx, func(ctx context.Context) (*resourcev1.ResourceClaim, error) {
		return c.main.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// DeleteResourceSlices deletes what drivers offer on a node: of one driver, or of all: "".
func (c *Client) DeleteResourceSlices(ctx context.Context, nodeName, driver string) error {
	set := fields.Set{resourcev1.ResourceSliceSelectorNodeName: nodeName}
	if driver != "" {
		set[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	_, err := loop.Await(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.main.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: set.String()})
	})
	return err
}

// GetPersistentVolumeClaim asks the API server. Errors: NotFound.
func (c *Client) GetPersistentVolumeClaim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.PersistentVolumeClaim, error) {
		return c.main.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// GetPersistentVolume asks the API server. Errors: NotFound.
func (c *Client) GetPersistentVolume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.PersistentVolume, error) {
		return c.main.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	})
}

// CreateToken asks for a service account's token.
func (c *Client) CreateToken(ctx context.Context, namespace, serviceAccount string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return loop.Await(ctx, func(ctx context.Context) (*authenticationv1.TokenRequest, error) {
		return c.main.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, tr, metav1.CreateOptions{})
	})
}

// GetServiceAccount asks the API server. Errors: NotFound.
func (c *Client) GetServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	return loop.Await(ctx, func(ctx context.Context) (*v1.ServiceAccount, error) {
		return c.main.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// ServesClusterTrustBundles asks what the API serves of certificates.k8s.io/v1beta1. A list
// that is incomplete, with an error, may do.
func (c *Client) ServesClusterTrustBundles(ctx context.Context) (bool, error) {
	return loop.Await(ctx, func(context.Context) (bool, error) {
		list, err := c.main.Discovery().ServerResourcesForGroupVersion(certificatesv1beta1.SchemeGroupVersion.String())
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "clustertrustbundles" }) {
			return true, nil
		}
		return false, err
	})
}

// CreatePodCertificateRequest asks for a pod's certificate.
func (c *Client) CreatePodCertificateRequest(ctx context.Context, r *certificatesv1beta1.PodCertificateRequest) (*certificatesv1beta1.PodCertificateRequest, error) {
	return loop.Await(ctx, func(ctx context.Context) (*certificatesv1beta1.PodCertificateRequest, error) {
		return c.main.CertificatesV1beta1().PodCertificateRequests(r.Namespace).Create(ctx, r, metav1.CreateOptions{})
	})
}

// await is loop.Await for a call that returns an error only.
func await(ctx context.Context, fn func(ctx context.Context) error) error {
	_, err := loop.Await(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}
