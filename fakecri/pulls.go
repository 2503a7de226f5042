package fakecri

// PullCount is what pulls of an image came to, as [Runtime.Pulls] tells of it.
type PullCount struct {
	// Image is its canonical name.
	Image string
	// Pulls counts those that worked, Bytes sums the image's size over those
	// that found it absent.
	Pulls, Bytes int64
}

// countPull notes a pull that worked; fresh says that the image was absent.
func (st *imageStore) countPull(name string, size int64, fresh bool) {
	i := 0
	for i < len(st.pulled) && st.pulled[i].Image != name {
		i++
	}
	if i == len(st.pulled) {
		st.pulled = append(st.pulled, PullCount{Image: name})
	}
	st.pulled[i].Pulls++
	if fresh {
		st.pulled[i].Bytes += size
	}
}

// Pulls tells of the images that were pulled since the runtime was made, in the
// order of their first pull. It is no call and takes no time.
func (r *Runtime) Pulls() []PullCount { return append([]PullCount(nil), r.images.pulled...) }
