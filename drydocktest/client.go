package drydocktest

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
)

// Object is an API object with a Go type of a scheme.
type Object interface {
	metav1.Object
	runtime.Object
}

// Client is a client for the test's own requests: it reads and writes objects with Go
// types, without a cache and without limits. Its methods are called like those of
// controller-runtime's client, which this module doesn't depend on; for that one,
//
//	client.New(c.Config("user"), client.Options{Scheme: scheme})
type Client struct {
	scheme  *runtime.Scheme
	objects dynamic.Interface
	mapper  meta.RESTMapper
}

// Client returns a client of this name for the types of a scheme.
func (c *Cluster) Client(name string, scheme *runtime.Scheme) *Client {
	c.t.Helper()
	config := c.Config(name)
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		c.t.Fatalf("drydocktest: %v", err)
	}
	kinds, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatalf("drydocktest: %v", err)
	}
	return &Client{scheme, objects, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds.Discovery()))}
}

// resource is where objects of a type are.
func (c *Client) resource(obj runtime.Object, namespace string) (dynamic.ResourceInterface, schema.GroupVersionKind, error) {
	gvks, _, err := c.scheme.ObjectKinds(obj)
	if err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	gvk := gvks[0]
	if meta.IsListType(obj) {
		gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	}
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, gvk, err
	}
	of := c.objects.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return of, gvk, nil
	}
	return of.Namespace(namespace), gvk, nil
}

// send makes a request about an object, and reads the answer into it.
func (c *Client) send(obj Object, do func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error)) error {
	of, gvk, err := c.resource(obj, obj.GetNamespace())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	out, err := do(of, u)
	if err != nil || out == nil {
		return err
	}
	return c.read(out.Object, obj)
}

// read reads content into an object, of which nothing else is left.
func (c *Client) read(content map[string]any, into runtime.Object) error {
	gvks, _, err := c.scheme.ObjectKinds(into)
	if err != nil {
		return err
	}
	fresh, err := c.scheme.New(gvks[0])
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh); err != nil {
		return err
	}
	return assign(into, fresh)
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, key types.NamespacedName, obj Object) error {
	of, _, err := c.resource(obj, key.Namespace)
	if err != nil {
		return err
	}
	out, err := of.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return c.read(out.Object, obj)
}

// List reads the objects of a namespace, "" for all, into a list.
func (c *Client) List(ctx context.Context, list runtime.Object, namespace string, options metav1.ListOptions) error {
	of, gvk, err := c.resource(list, namespace)
	if err != nil {
		return err
	}
	out, err := of.List(ctx, options)
	if err != nil {
		return err
	}
	for i := range out.Items {
		out.Items[i].SetGroupVersionKind(gvk)
	}
	return c.read(out.UnstructuredContent(), list)
}

// Create makes an object.
func (c *Client) Create(ctx context.Context, obj Object) error {
	return c.send(obj, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return of.Create(ctx, u, metav1.CreateOptions{})
	})
}

// Update writes an object.
func (c *Client) Update(ctx context.Context, obj Object) error {
	return c.send(obj, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return of.Update(ctx, u, metav1.UpdateOptions{})
	})
}

// UpdateStatus writes an object's status.
func (c *Client) UpdateStatus(ctx context.Context, obj Object) error {
	return c.send(obj, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return of.UpdateStatus(ctx, u, metav1.UpdateOptions{})
	})
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, obj Object, how types.PatchType, patch []byte) error {
	return c.send(obj, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return of.Patch(ctx, obj.GetName(), how, patch, metav1.PatchOptions{})
	})
}

// Delete deletes an object. That it is not there is no error.
func (c *Client) Delete(ctx context.Context, obj Object) error {
	return c.send(obj, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := of.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		return nil, nil
	})
}

// assign has one struct be what another of its type is.
func assign(into, from any) error {
	to, is := reflect.ValueOf(into), reflect.ValueOf(from)
	if to.Type() != is.Type() || to.Kind() != reflect.Pointer {
		return fmt.Errorf("a %T is no %T", from, into)
	}
	to.Elem().Set(is.Elem())
	return nil
}
