package certificates

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

// Fault is something wrong with who approves and signs.
type Fault struct {
	// Signer is the spec.signerName of the requests that it hits, Node the node that they are for;
	// "": all nodes.
	Signer, Node string
	// Deny has requests denied, as an administrator does.
	Deny bool
	// Delay is how old a request is at least when it is signed.
	Delay time.Duration
	// OnHit, if any, is called on the API's loop with each request that the fault changes something
	// about.
	OnHit func()
}

// Faults are those that act now. They outlive the processes that they hit. The zero value is none.
type Faults struct {
	list []*Fault
	// ended is called when there is a fault less; nil: nobody signs.
	ended func()
	// onEnd are the same of those who sign for pods.
	onEnd []func()
}

// Add makes a fault act until remove is called.
func (f *Faults) Add(one Fault) (remove func()) {
	p := &one
	f.list = append(f.list, p)
	return func() {
		f.list = slices.DeleteFunc(f.list, func(o *Fault) bool { return o == p })
		if f.ended != nil {
			f.ended()
		}
		for _, fn := range f.onEnd {
			fn()
		}
	}
}

// nodeOf is the node that a request is for.
func nodeOf(r *x509.CertificateRequest) string {
	return strings.TrimPrefix(r.Subject.CommonName, "system:node:")
}

// of returns the faults that hit a request of a signer's for a node.
func (f *Faults) of(signer, node string) (out []*Fault) {
	for _, one := range f.list {
		if one.Signer == signer && (one.Node == "" || one.Node == node) {
			out = append(out, one)
		}
	}
	return out
}

// denies reports whether a request is to be denied.
func (f *Faults) denies(signer, node string) bool {
	for _, one := range f.of(signer, node) {
		if one.Deny {
			one.hit()
			return true
		}
	}
	return false
}

// delay is how old a request must be to be signed.
func (f *Faults) delay(signer, node string) (d time.Duration) {
	for _, one := range f.of(signer, node) {
		if one.Delay > 0 {
			one.hit()
			d = max(d, one.Delay)
		}
	}
	return d
}

func (f *Fault) hit() {
	if f.OnHit != nil {
		f.OnHit()
	}
}
