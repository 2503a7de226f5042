package metrics

// events counts what a runtime that tells of its containers (gate EventedPLEG) does.
type events struct {
	connected, failed uint64
	latency           Histogram
}

// Evented has the families of the evented PLEG made, as upstream does with its gate only.
func (k *Kubelet) Evented() {
	if k != nil {
		k.events = &events{}
	}
}

// EventsConnected counts a stream of container events that was made.
func (k *Kubelet) EventsConnected() {
	if k != nil {
		k.events.connected++
	}
}

// EventsFailed counts a stream that has ended, or was not made.
func (k *Kubelet) EventsFailed() {
	if k != nil {
		k.events.failed++
	}
}

// EventTold counts an event that the runtime made so many ns ago.
func (k *Kubelet) EventTold(after int64) {
	if k != nil {
		k.events.latency.Observe(float64(after)/1e9, defaultBuckets)
	}
}

// evented adds what was counted of events.
func (k *Kubelet) evented(b *builder) {
	if k.events == nil {
		return
	}
	b.counter("kubelet_evented_pleg_connection_error_count", k.events.failed)
	b.counter("kubelet_evented_pleg_connection_success_count", k.events.connected)
	b.histogram("kubelet_evented_pleg_connection_latency_seconds", &k.events.latency, defaultBuckets, 0, 0)
}
