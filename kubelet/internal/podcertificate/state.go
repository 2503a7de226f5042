package podcertificate

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// state is how far a source has come. Its words are those of errors.
type state string

const (
	initial     state = "initial"
	wait        state = "wait"
	denied      state = "denied"
	failed      state = "failed"
	fresh       state = "fresh"
	waitRefresh state = "waitrefresh"
)

// record is what is known of a source.
type record struct {
	state state
	// credentials are those in use, refreshAt when the next are asked for, notAfter when
	// they expire; in fresh and waitrefresh. overdueTold and expiredTold: there was an event.
	credentials              *volume.Credentials
	refreshAt, notAfter      time.Time
	overdueTold, expiredTold bool
	// request is under way, with a private key as PEM; abandonAt is when it is taken for
	// deleted if it is not seen. In wait and waitrefresh.
	request   types.NamespacedName
	key       []byte
	abandonAt time.Time
	// reason and message are those of denied and failed.
	reason, message string
}

// settled reports whether a look at a source would do nothing before something happens.
func (r *record) settled(now time.Time) bool {
	switch r.state {
	case denied, failed:
		return true
	case fresh:
		return now.Before(r.refreshAt)
	}
	return false
}

// metric is the state as metrics have it.
func (r *record) metric(now time.Time) string {
	switch r.state {
	case denied, failed:
		return string(r.state)
	case fresh, waitRefresh:
		switch {
		case now.After(r.notAfter):
			return "expired"
		case r.overdue(now):
			return "overdue_for_refresh"
		}
		return "fresh"
	}
	return "not_yet_issued"
}

// overdue reports whether there should have been another certificate by now.
func (r *record) overdue(now time.Time) bool { return now.After(r.refreshAt.Add(overdueAfter)) }

// handle looks at a source. An error has it looked at again soon.
func (m *Manager) handle(ctx context.Context, k key) error {
	pod, ok := m.o.Pods.GetPodByUID(k.PodUID)
	if !ok {
		m.forget(k)
		return nil
	}
	source := sourceOf(pod, k)
	if source == nil {
		m.logf("pod does not contain the named podCertificate projected volume source key=%v", k)
		return nil
	}
	r := m.records[k]
	if r == nil {
		r = &record{state: initial}
		m.records[k] = r
	}
	switch r.state {
	case initial:
		if err := m.ask(ctx, pod, k, source, r, "initial"); err != nil {
			return err
		}
		r.state = wait
	case fresh:
		if m.l.Now().Before(r.refreshAt) {
			return nil
		}
		m.tellLate(pod, r)
		if err := m.ask(ctx, pod, k, source, r, "refresh"); err != nil {
			return err
		}
		r.state = waitRefresh
	case wait, waitRefresh:
		return m.await(pod, r)
	}
	return nil
}

// sourceOf finds a source of a pod; nil: it has none such.
func sourceOf(pod *v1.Pod, k key) (out *v1.PodCertificateProjection) {
	eachSource(pod, func(is key, s *v1.PodCertificateProjection) {
		if is == k {
			out = s
		}
	})
	return out
}

// await looks at what has become of a request. One that is not to be seen is either not
// seen yet or gone: which of both, only time tells.
func (m *Manager) await(pod *v1.Pod, r *record) error {
	request := m.requests[r.request]
	if request == nil {
		if m.l.Now().After(r.abandonAt) {
			name := r.request
			r.request, r.key = types.NamespacedName{}, nil
			if r.state == wait {
				r.state = initial
				return fmt.Errorf("PodCertificateRequest %q appears to have been deleted", name.String())
			}
			r.state = fresh
			return fmt.Errorf("PodCertificateRequest appears to have been deleted")
		}
		return fmt.Errorf("while getting PodCertificateRequest %q: %w", r.request.String(), apierrors.NewNotFound(certificatesv1beta1.Resource("podcertificaterequest"), r.request.Name))
	}
	for i := range request.Status.Conditions {
		c := &request.Status.Conditions[i]
		switch c.Type {
		case certificatesv1beta1.PodCertificateRequestConditionTypeDenied:
			m.refused(pod, r, denied, c.Type, c.Reason, c.Message, "was denied")
			return nil
		case certificatesv1beta1.PodCertificateRequestConditionTypeFailed:
			m.refused(pod, r, failed, c.Type, c.Reason, c.Message, "failed")
			return nil
		case certificatesv1beta1.PodCertificateRequestConditionTypeIssued:
			*r = record{
				state: fresh, credentials: &volume.Credentials{Key: r.key, Chain: cleaned(request.Status.CertificateChain)},
				refreshAt: request.Status.BeginRefreshAt.Add(m.jitter()), notAfter: request.Status.NotAfter.Time,
			}
			return nil
		}
	}
	if r.state == waitRefresh {
		m.tellLate(pod, r)
	}
	return nil
}

// refused ends a source for good. The text of the event is made as upstream makes it, which
// takes the condition's reason for a format.
func (m *Manager) refused(pod *v1.Pod, r *record, to state, event, reason, message, how string) {
	text := fmt.Sprintf("PodCertificateRequest %s %s, reason=%q, message=%q", r.request.String(), how, reason, message)
	*r = record{state: to, reason: reason, message: message}
	m.o.Recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, event, fmt.Sprintf(reason, text))
}

// tellLate tells, once for each certificate, that it should have been followed by another,
// and that it has expired.
func (m *Manager) tellLate(pod *v1.Pod, r *record) {
	now := m.l.Now()
	if r.overdue(now) && !r.overdueTold {
		m.o.Recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.CertificateOverdueForRefresh, "PodCertificate refresh overdue")
		r.overdueTold = true
	}
	if now.After(r.notAfter) && !r.expiredTold {
		m.o.Recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.CertificateExpired, "PodCertificate expired")
		r.expiredTold = true
	}
}

// cleaned is a chain without what may stand between and in its blocks.
func cleaned(chain string) []byte {
	var out bytes.Buffer
	for block, rest := pem.Decode([]byte(chain)); block != nil; block, rest = pem.Decode(rest) {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
	}
	return out.Bytes()
}
