package podcertificate

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/transcript"
)

// node is a node with pods that have one source each, an API and a signer.
type node struct {
	t     *testing.T
	l     *loop.Loop
	m     *Manager
	pods  map[types.UID]*v1.Pod
	made  int
	down  bool
	last  *certificatesv1beta1.PodCertificateRequest
	event func(watch.EventType, *certificatesv1beta1.PodCertificateRequest)
	out   strings.Builder
}

// TestTranscript is the machine of upstream's podcertificatemanager.go.
//
//	pod NAME                 a pod comes to the node; forget NAME: it goes
//	issue refresh=1h for=2h  the last request is granted, from now on
//	deny, fail reason=R      it is not
//	delete                   it is deleted
//	down, up                 requests can't be made, can be
//	run 5m                   time goes by; what is asked for and told is shown
//	show NAME                what the volume would get, and the metric
func TestTranscript(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(c *transcript.Command) string {
		n := &node{t: t, l: loop.New(loop.Options{Name: "n", Seed: 1}), pods: map[types.UID]*v1.Pod{}}
		t.Cleanup(n.l.Close)
		n.m = New(Options{
			Group: n.l.NewGroup("kubelet"), Client: n, NodeName: "n", Pods: n, Recorder: n, Keys: n,
			Node: func() *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid"}} }, NodeSynced: func() bool { return true },
		})
		n.m.Start()
		return n.do
	})
}

func (n *node) do(c *transcript.Command) string {
	n.out.Reset()
	switch c.Name {
	case "pod":
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Word(0), UID: types.UID(c.Word(0))}, Spec: v1.PodSpec{ServiceAccountName: "web", Volumes: []v1.Volume{
			{Name: "other"},
			{Name: "id", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{}, {PodCertificate: &v1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}}}}}},
		}}}
		n.pods[pod.UID] = pod
		n.m.TrackPod(pod)
	case "forget":
		n.m.ForgetPod(n.pods[types.UID(c.Word(0))])
		delete(n.pods, types.UID(c.Word(0)))
	case "issue":
		at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: n.l.Now().Add(d)} }
		n.decide("Issued", "", func(s *certificatesv1beta1.PodCertificateRequestStatus) {
			s.BeginRefreshAt, s.NotAfter = at(c.Duration("refresh", 0)), at(c.Duration("for", 0))
			s.CertificateChain = "noise\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"h": "v"}, Bytes: []byte("of " + n.last.Name)}))
		})
	case "deny":
		n.decide("Denied", c.Text("reason", ""), func(*certificatesv1beta1.PodCertificateRequestStatus) {})
	case "fail":
		n.decide("Failed", c.Text("reason", ""), func(*certificatesv1beta1.PodCertificateRequestStatus) {})
	case "delete":
		n.event(watch.Deleted, n.last)
	case "down", "up":
		n.down = c.Name == "down"
	case "run":
		if err := n.l.RunUntil(n.l.Now().Add(c.For())); err != nil {
			n.t.Fatal(err)
		}
	case "show":
		n.show(c.Word(0))
	default:
		c.Fatalf("there is no command %s", c.Name)
	}
	return n.out.String()
}

func (n *node) say(format string, args ...any) {
	fmt.Fprintf(&n.out, "%v "+format+"\n", append([]any{n.l.Since(loop.Epoch()).Round(time.Second)}, args...)...)
}

func (n *node) decide(condition, reason string, more func(*certificatesv1beta1.PodCertificateRequestStatus)) {
	own := n.last.DeepCopy()
	own.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: "because"}}
	more(&own.Status)
	n.last = own
	n.event(watch.Modified, own)
}

// show tells which request the key and the chain are of.
func (n *node) show(name string) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	c, err := n.m.GetPodCertificateCredentialBundle(pod, "id", 1)
	if err != nil {
		fmt.Fprintln(&n.out, err)
	} else {
		key, _ := pem.Decode(c.Key)
		chain, rest := pem.Decode(c.Chain)
		if _, err := x509.ParsePKCS8PrivateKey(key.Bytes); err != nil || len(chain.Headers) > 0 || len(rest) > 0 {
			n.t.Errorf("key %v, chain %q", err, c.Chain)
		}
		sum := sha256.Sum256(key.Bytes)
		fmt.Fprintf(&n.out, "key %x, certificate %s\n", sum[:3], chain.Bytes)
	}
	fmt.Fprintln(&n.out, n.m.States())
}

// GetPodByUID is that of Pods, as Each.
func (n *node) GetPodByUID(uid types.UID) (*v1.Pod, bool) { pod, ok := n.pods[uid]; return pod, ok }

// Each is that of Pods. There is one pod at most.
func (n *node) Each(fn func(*v1.Pod)) {
	for _, pod := range n.pods {
		fn(pod)
	}
}

// Event is that of Recorder.
func (n *node) Event(ref *v1.ObjectReference, eventtype, reason, message string) {
	n.say("event of %s: %s %s: %s", ref.Name, eventtype, reason, message)
}

// NewPodKey is that of Keys.
func (n *node) NewPodKey(_ context.Context, keyType, name string) (crypto.Signer, error) {
	if keyType != "ED25519" {
		n.t.Errorf("a key of type %s", keyType)
	}
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:]), nil
}

// WatchPodCertificateRequests is that of Client, as the two below.
func (n *node) WatchPodCertificateRequests(_ *loop.Group, _ string, listed func([]*certificatesv1beta1.PodCertificateRequest), event func(watch.EventType, *certificatesv1beta1.PodCertificateRequest)) {
	n.event = event
	listed(nil)
}

func (n *node) GetServiceAccount(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "account-uid"}}, nil
}

var errDown = errors.New("down")

func (n *node) CreatePodCertificateRequest(_ context.Context, r *certificatesv1beta1.PodCertificateRequest) (*certificatesv1beta1.PodCertificateRequest, error) {
	if n.down {
		return nil, errDown
	}
	n.made++
	request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil || request.CheckSignature() != nil || r.Spec.NodeUID != "node-uid" || r.Spec.ServiceAccountUID != "account-uid" || r.OwnerReferences[0].UID != r.Spec.PodUID {
		n.t.Errorf("request %+v, %v", r, err)
	}
	made := r.DeepCopy()
	made.Name, made.CreationTimestamp = fmt.Sprint(r.GenerateName, n.made), metav1.Time{Time: n.l.Now()}
	n.last = made
	n.say("%s for %s", made.Name, r.Spec.PodName)
	n.event(watch.Added, made)
	return made, nil
}
