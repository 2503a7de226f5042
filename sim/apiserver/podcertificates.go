package apiserver

import (
	"context"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// This file has what nodes ask for pods' certificates in files: bundles of whom to
// trust, and requests for certificates of their own. Where the gates are off the API
// knows neither.

// podCertificates is the part of a Client that asks for them.
type podCertificates struct{ c *Client }

// ServesClusterTrustBundles asks whether the API serves the kind.
func (p podCertificates) ServesClusterTrustBundles(ctx context.Context) (bool, error) {
	return call(ctx, p.c, wire.Request{Verb: "get", Resource: "apis"}, func(s *store.Store, _ time.Time) (bool, error) {
		return s.Kinds().Find(KindClusterTrustBundle) != nil, nil
	})
}

// WatchClusterTrustBundles lists the bundles by name and watches them until stop is
// called or g dies; otherwise as WatchConfigMap. The kind must be served.
func (p podCertificates) WatchClusterTrustBundles(g *loop.Group, listed func([]*certificatesv1beta1.ClusterTrustBundle), event func(watch.EventType, *certificatesv1beta1.ClusterTrustBundle)) (stop func()) {
	return p.c.watchObject(g, KindClusterTrustBundle, "", "", func(list []Object) {
		listed(lists.Map(list, func(o Object) *certificatesv1beta1.ClusterTrustBundle {
			return o.(*certificatesv1beta1.ClusterTrustBundle)
		}))
	}, func(t watch.EventType, o Object) { event(t, o.(*certificatesv1beta1.ClusterTrustBundle)) })
}

// WatchPodCertificateRequests is WatchPods for the requests of a node's kubelet. Where the
// kind is not served there is never a list: a reflector tries again for ever.
func (p podCertificates) WatchPodCertificateRequests(g *loop.Group, nodeName string, listed func([]*certificatesv1beta1.PodCertificateRequest), event func(watch.EventType, *certificatesv1beta1.PodCertificateRequest)) {
	if p.c.kinds.Find(KindPodCertificateRequest) == nil {
		return
	}
	p.c.watch(g, KindPodCertificateRequest, nodeName, func(list []Object) {
		listed(lists.Map(list, func(o Object) *certificatesv1beta1.PodCertificateRequest {
			return o.(*certificatesv1beta1.PodCertificateRequest)
		}))
	}, func(t watch.EventType, o Object) { event(t, o.(*certificatesv1beta1.PodCertificateRequest)) })
}

// CreatePodCertificateRequest asks for a pod's certificate, as the node. The request is not
// to be used any more. Errors: Forbidden and others of admission (NodeRestriction).
func (p podCertificates) CreatePodCertificateRequest(ctx context.Context, r *certificatesv1beta1.PodCertificateRequest) (*certificatesv1beta1.PodCertificateRequest, error) {
	node := p.c.node
	return call(ctx, p.c, wire.Request{Verb: "create", Resource: "podcertificaterequests", Namespace: r.Namespace}, func(s *store.Store, now time.Time) (*certificatesv1beta1.PodCertificateRequest, error) {
		nameAccount(s, r)
		if err := restrictPodCertificate(s, node, r); err != nil {
			return nil, err
		}
		return as[*certificatesv1beta1.PodCertificateRequest](s.Create(now, r))
	})
}

// restrictPodCertificate refuses a node what it may not ask for (admitPodCertificateRequest
// of plugin/pkg/admission/noderestriction): the request is of the node, for a pod that is
// bound to it, and of the pod's service account. What may be wrong because somebody does not
// know of the latest change yet is no Forbidden: who asks may try again.
func restrictPodCertificate(s *Store, node string, r *certificatesv1beta1.PodCertificateRequest) error {
	of := &r.Spec
	pod := r.Namespace + "/" + of.PodName
	forbid := func(format string, args ...any) error {
		return apierrors.NewForbidden(certificatesv1beta1.Resource("podcertificaterequests"), r.Name, fmt.Errorf(format, args...))
	}
	stale := func(format string, args ...any) error {
		return apierrors.NewInternalError(fmt.Errorf(format, args...))
	}
	if string(of.NodeName) != node {
		return forbid("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", of.NodeName, node)
	}
	n, err := s.Get(KindNode, "", node)
	if err != nil {
		return stale("while retrieving node %q named in the PodCertificateRequest: %w", node, err)
	}
	if n.GetUID() != of.NodeUID {
		return stale("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", pod, of.NodeUID, n.GetUID())
	}
	o, err := s.Get(KindPod, r.Namespace, of.PodName)
	if err != nil {
		return stale("while retrieving pod %q named in the PodCertificateRequest: %w", pod, err)
	}
	p := o.(*v1.Pod)
	switch {
	case p.UID != of.PodUID:
		return stale("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", pod, of.PodUID, p.UID)
	case p.Spec.NodeName != node:
		return forbid("pod %q is not running on node %q named in the PodCertificateRequest", pod, of.NodeName)
	case p.Annotations[v1.MirrorPodAnnotationKey] != "":
		return forbid("pod %q is a mirror pod", pod)
	case p.Spec.ServiceAccountName != of.ServiceAccountName:
		return forbid("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", pod, of.ServiceAccountName, p.Spec.ServiceAccountName)
	}
	account, err := store.ServiceAccount(s, r.Namespace, of.ServiceAccountName)
	if err != nil {
		return stale("while retrieving service account %q named in the PodCertificateRequest: %w", r.Namespace+"/"+of.ServiceAccountName, err)
	}
	if uid := accountUID(account); uid != of.ServiceAccountUID {
		return stale("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", pod, of.ServiceAccountUID, uid)
	}
	return nil
}

// accountUID is that of an account, or of one that is taken to exist and has none.
func accountUID(account Object) types.UID {
	if uid := account.GetUID(); uid != "" {
		return uid
	}
	return noAccountUID
}

// noAccountUID stands for the UID of an account that is taken to exist (see
// [Tokens.Create]): requests for certificates need one.
const noAccountUID types.UID = "00000000-0000-0000-0000-000000000000"

// nameAccount gives a request the UID of an account that is taken to exist, which the node
// found none of.
func nameAccount(s *Store, r *certificatesv1beta1.PodCertificateRequest) {
	if r.Spec.ServiceAccountUID != "" {
		return
	}
	if account, err := store.ServiceAccount(s, r.Namespace, r.Spec.ServiceAccountName); err == nil && account.GetUID() == "" {
		r.Spec.ServiceAccountUID = noAccountUID
	}
}
