package pod

import (
	"context"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// MirrorAPI is what mirror pods need of the API.
type MirrorAPI interface {
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	CreatePod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error)
	DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error
}

// MirrorClient creates and deletes mirror pods
// (pkg/kubelet/pod/mirror_client.go). A nil API makes it do nothing, as in
// standalone mode.
type MirrorClient struct {
	api  MirrorAPI
	node func() *v1.Node
	log  func(format string, args ...any)
}

// NewMirrorClient returns a MirrorClient. node returns the node's object as
// last seen, or nil; log may be nil.
func NewMirrorClient(api MirrorAPI, node func() *v1.Node, log func(format string, args ...any)) *MirrorClient {
	return &MirrorClient{api: api, node: node, log: log}
}

// CreateMirrorPod creates the mirror of a static pod, owned by the node. One
// that is there already and has the same hash is fine.
func (c *MirrorClient) CreateMirrorPod(ctx context.Context, pod *v1.Pod) error {
	if c.api == nil {
		return nil
	}
	node := c.node()
	if node == nil {
		return fmt.Errorf("failed to get node: the node is not known yet")
	}
	hash := pod.Annotations[kubetypes.ConfigHashAnnotationKey]
	mirror := *pod
	mirror.Annotations = make(map[string]string, len(pod.Annotations)+1)
	maps.Copy(mirror.Annotations, pod.Annotations)
	mirror.Annotations[kubetypes.ConfigMirrorAnnotationKey] = hash
	mirror.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true),
	}}
	_, err := c.api.CreatePod(ctx, &mirror)
	if apierrors.IsAlreadyExists(err) {
		if got, gerr := c.api.GetPod(ctx, pod.Namespace, pod.Name); gerr == nil &&
			got.Annotations[kubetypes.ConfigMirrorAnnotationKey] == hash {
			return nil
		}
	}
	return err
}

// DeleteMirrorPod deletes the mirror pod of that name at once, on condition of
// its UID unless that is "". It reports whether something was deleted: a pod
// that is gone, or another one by now, is no error.
func (c *MirrorClient) DeleteMirrorPod(ctx context.Context, namespace, podName string, uid types.UID) (bool, error) {
	if c.api == nil {
		return false, nil
	}
	if c.log != nil {
		c.log("Deleting a mirror pod %s_%s", podName, namespace)
	}
	opts := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := c.api.DeletePod(ctx, namespace, podName, opts)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	}
	return false, err
}

// IsMirrorPodOf reports whether mirror is the present mirror of the static pod.
func IsMirrorPodOf(mirror, pod *v1.Pod) bool {
	return mirror.Name == pod.Name && mirror.Namespace == pod.Namespace &&
		mirror.Annotations[kubetypes.ConfigMirrorAnnotationKey] == pod.Annotations[kubetypes.ConfigHashAnnotationKey]
}
