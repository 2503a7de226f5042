package clusterapi

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// machines is where the provider's machines are (util/test/builder of Cluster API).
var machines = schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "genericinfrastructuremachines"}

// finalizer keeps a machine until its node is free again.
const finalizer = "example.com/provider"

// provider hands out the cluster's nodes as machines: one that is asked for is the first
// node that no other has.
type provider struct {
	machines dynamic.NamespaceableResourceInterface
	nodes    *kubernetes.Clientset
}

// RunProvider looks after machines every few seconds, until the context ends.
func RunProvider(ctx context.Context, cfg *rest.Config) error {
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	nodes, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	p := &provider{objects.Resource(machines), nodes}
	for {
		// What fails is tried again.
		if err := p.look(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look sees to each machine once.
func (p *provider) look(ctx context.Context) error {
	list, err := p.machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all, err := p.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var free []string
	for i := range all.Items {
		n := &all.Items[i]
		taken := slices.ContainsFunc(list.Items, func(m unstructured.Unstructured) bool { return providerID(&m) == idOf(n.Name) })
		if !taken && isReady(n) {
			free = append(free, n.Name)
		}
	}
	slices.Sort(free)
	var errs []error
	for i := range list.Items {
		m := &list.Items[i]
		switch {
		case m.GetDeletionTimestamp() != nil:
			m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == finalizer }))
			_, err := p.machines.Namespace(m.GetNamespace()).Update(ctx, m, metav1.UpdateOptions{})
			if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		case providerID(m) == "" && len(free) > 0:
			errs = append(errs, p.provision(ctx, m, free[0]))
			free = free[1:]
		}
	}
	return errors.Join(errs...)
}

// provision gives a machine a node.
func (p *provider) provision(ctx context.Context, m *unstructured.Unstructured, node string) error {
	n, err := p.nodes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n.Spec.ProviderID == "" {
		n.Spec.ProviderID = idOf(node)
		if _, err := p.nodes.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	m.SetFinalizers(append(m.GetFinalizers(), finalizer))
	if err := unstructured.SetNestedField(m.Object, idOf(node), "spec", "providerID"); err != nil {
		return err
	}
	at := p.machines.Namespace(m.GetNamespace())
	m, err = at.Update(ctx, m, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(m.Object, true, "status", "initialization", "provisioned"); err != nil {
		return err
	}
	_, err = at.UpdateStatus(ctx, m, metav1.UpdateOptions{})
	return err
}

func idOf(node string) string { return "drydock:////" + node }

func providerID(m *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID") // "" if it is anything else
	return id
}

func isReady(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
}
