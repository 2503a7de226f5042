package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
)

// GCPolicy says when unused images are removed (upstream ImageGCPolicy).
type GCPolicy struct {
	// HighThresholdPercent is the use of the image file system at which images
	// are removed, LowThresholdPercent down to which. Both are 0 to 100.
	HighThresholdPercent, LowThresholdPercent int
	// MinAge is how long an image must be known to be removed for want of space.
	MinAge time.Duration
	// MaxAge is how long an image may be unused; 0: for ever.
	MaxAge time.Duration
}

// GCRuntime is what garbage collection needs of the runtime. Its methods wait.
type GCRuntime interface {
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	GetPods(ctx context.Context) ([]*kubecontainer.Pod, error)
	// ImageMounts are the images that are mounted in a container, by id.
	ImageMounts(ctx context.Context, containerID string) ([]string, error)
	RemoveImage(ctx context.Context, id string) error
}

// GCOptions are what a GCManager is made of.
type GCOptions struct {
	Loop     *loop.Loop
	Runtime  GCRuntime
	Recorder EventRecorder
	NodeRef  *v1.ObjectReference
	Policy   GCPolicy
	// FsStats are those of the file system with the images. What is nil in them
	// is not known.
	FsStats func(ctx context.Context) (*statsapi.FsStats, error)
	// Collected is told of a pass that has looked for what to remove: since when
	// it ran, and which of the images that it looked at are left (upstream
	// PostImageGCHook). Images that it did not look at, because they are used or
	// pinned or enough was freed before, are not among them: upstream drops their
	// pull records, too, so that who uses them next has to show credentials.
	Collected func(left []string, since time.Time)
	// UseGeneration tells, without a call, whether a listing of images,
	// containers and what they mount would show other images or other uses of
	// them than when it last returned the same number; 0: it cannot tell. nil:
	// nobody can.
	UseGeneration func() uint64
	// Below tells, without a call, whether fewer bytes may be available to images
	// than floor. nil: nobody can.
	Below func(floor int64) bool
	Log   func(format string, args ...any)
}

// passTime is less than any pass takes, and by which those that are made come
// later and later. So an image that is unused for a multiple of their period is
// older than that, and has to be, too, when passes are left out.
const passTime = time.Microsecond

// imageRecord is what is known of an image.
type imageRecord struct {
	id            string
	firstDetected time.Time
	// lastUsed is when it was last seen to be used, the zero time if never. Of
	// one that is in use it is GCManager.seen.
	lastUsed time.Time
	inUse    bool
	pinned   bool
	size     int64
}

// GCManager knows since when images are there and when they were last used, and
// removes those that are not used when the disk fills up or they get old
// (upstream images/image_gc_manager.go).
//
// A pass that would find nothing to do need not be made: see [GCManager.Unused]
// and [GCManager.Idle].
type GCManager struct {
	o       GCOptions
	records map[string]*imageRecord
	// seen is when the images and their uses were last looked at, or known to be
	// as they had been; generation is the runtime's from before the last look.
	seen       time.Time
	generation uint64
	// oldest is the least lastUsed of the images that can be removed, if any.
	oldest     time.Time
	removable  bool
	began      time.Time
	floor      int64 // of available bytes, for Below; 0 until it is known
	failedLast bool
}

// NewGC returns a GCManager that has seen nothing yet.
func NewGC(o GCOptions) *GCManager {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &GCManager{o: o, records: map[string]*imageRecord{}, began: o.Loop.Now()}
}

// Off reports whether the policy never has anything removed by a pass; images can
// still be deleted for eviction.
func (m *GCManager) Off() bool {
	return m.o.Policy.HighThresholdPercent == 100 && m.o.Policy.MaxAge == 0
}

// Detect is one pass of the detection of images and their uses.
func (m *GCManager) Detect(ctx context.Context) {
	if err := m.detect(ctx, m.o.Loop.Now()); err != nil {
		m.o.Log("Failed to monitor images: %v", err)
	}
}

// Unchanged reports whether Detect, now, would find what was there at the last
// look, and if so notes that it was.
func (m *GCManager) Unchanged() bool {
	if m.o.UseGeneration == nil || m.generation == 0 || m.o.UseGeneration() != m.generation {
		return false
	}
	m.seen = m.o.Loop.Now().Add(-passTime)
	return true
}

// Idle reports whether Collect, now, would remove nothing and succeed, and if so
// notes what it would have.
func (m *GCManager) Idle() bool {
	if m.o.Below == nil || m.floor == 0 || m.o.Below(m.floor) || !m.Unchanged() {
		return false
	}
	now := m.o.Loop.Now()
	if age := m.o.Policy.MaxAge; age > 0 && now.Sub(m.began) > age && m.removable && now.Sub(m.oldest) > age {
		return false
	}
	m.failedLast = false
	return true
}

// Collect is one pass of garbage collection with its events: that of a failure
// comes only if the pass before has failed, too (upstream
// Kubelet.StartGarbageCollection).
func (m *GCManager) Collect(ctx context.Context) {
	err := m.garbageCollect(ctx)
	switch {
	case err == nil:
	case m.failedLast:
		m.o.Log("Image garbage collection failed multiple times in a row: %v", err)
		m.event(events.ImageGCFailed, err)
	default:
		m.o.Log("Image garbage collection failed once. Stats initialization may not have completed yet: %v", err)
	}
	m.failedLast = err != nil
}

func (m *GCManager) event(reason string, err error) {
	m.o.Recorder.Event(m.o.NodeRef, v1.EventTypeWarning, reason, err.Error())
}

// detect brings the records up to what the runtime has.
func (m *GCManager) detect(ctx context.Context, at time.Time) error {
	generation := uint64(0)
	if m.o.UseGeneration != nil {
		generation = m.o.UseGeneration()
	}
	images, err := m.o.Runtime.ListImages(ctx)
	if err != nil {
		return err
	}
	used, err := m.used(ctx)
	if err != nil {
		return err
	}
	now := m.o.Loop.Now()
	known := m.records
	m.records = make(map[string]*imageRecord, len(images))
	for _, image := range images {
		r := known[image.Id]
		if r == nil {
			r = &imageRecord{id: image.Id, firstDetected: at}
		}
		if r.inUse {
			r.lastUsed = m.seen
		}
		r.inUse, r.pinned, r.size = used[image.Id], image.Pinned, int64(image.Size)
		m.records[image.Id] = r
	}
	m.seen, m.generation = now, generation
	m.noteOldest()
	return nil
}

// used are the ids of the images that a container has or mounts, dead or alive.
func (m *GCManager) used(ctx context.Context) (map[string]bool, error) {
	pods, err := m.o.Runtime.GetPods(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			mounts, err := m.o.Runtime.ImageMounts(ctx, c.ID)
			if err != nil {
				return nil, fmt.Errorf("get container status: %w", err)
			}
			for _, id := range mounts {
				used[id] = true
			}
			used[c.ImageID] = true
		}
	}
	return used, nil
}

func (m *GCManager) noteOldest() {
	m.removable = false
	for _, r := range m.records { //drydock:unordered finds the least
		if !r.inUse && !r.pinned && (!m.removable || r.lastUsed.Before(m.oldest)) {
			m.oldest, m.removable = r.lastUsed, true
		}
	}
}

// inEvictionOrder looks for images and returns those that are neither used nor
// pinned: the longest unused first, then the longest known. What is equal then
// is in no order upstream; here ids decide.
func (m *GCManager) inEvictionOrder(ctx context.Context, at time.Time) ([]imageRecord, error) {
	if err := m.detect(ctx, at); err != nil {
		return nil, err
	}
	var out []imageRecord
	for _, r := range m.records { //drydock:unordered is sorted below
		if !r.inUse && !r.pinned {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b imageRecord) int {
		return cmp.Or(a.lastUsed.Compare(b.lastUsed), a.firstDetected.Compare(b.firstDetected), strings.Compare(a.id, b.id))
	})
	return out, nil
}

func (m *GCManager) garbageCollect(ctx context.Context) error {
	p := &m.o.Policy
	start := m.o.Loop.Now()
	images, err := m.inEvictionOrder(ctx, start)
	if err != nil {
		return err
	}
	if images, err = m.freeOld(ctx, images, start); err != nil {
		return err
	}
	fs, err := m.o.FsStats(ctx)
	if err != nil {
		return err
	}
	capacity, available := bytesOf(fs.CapacityBytes), bytesOf(fs.AvailableBytes)
	available = min(available, capacity)
	if capacity == 0 {
		err := errors.New("invalid capacity 0 on image filesystem")
		m.event(events.InvalidDiskCapacity, err)
		return err
	}
	m.floor = floorOf(capacity, p.HighThresholdPercent)
	usage := 100 - percent(available, capacity)
	if usage < p.HighThresholdPercent {
		return nil
	}
	toFree := share(capacity, 100-p.LowThresholdPercent) - available
	m.o.Log("Disk usage on image filesystem is over the high threshold, trying to free bytes down to the low threshold usage=%d highThreshold=%d amountToFree=%d lowThreshold=%d",
		usage, p.HighThresholdPercent, toFree, p.LowThresholdPercent)
	left, freed, err := m.freeSpace(ctx, images, toFree, start)
	if err != nil {
		return err
	}
	m.collected(left, start)
	if freed < toFree {
		err := fmt.Errorf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+ // upstream's text
			"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
			"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.", usage, formatSize(capacity), freed)
		m.event(events.FreeDiskSpaceFailed, err)
		return err
	}
	return nil
}

// DeleteUnusedImages removes all unused images that are old enough, as eviction
// asks for it.
func (m *GCManager) DeleteUnusedImages(ctx context.Context) error {
	m.o.Log("Attempting to delete unused images")
	start := m.o.Loop.Now()
	images, err := m.inEvictionOrder(ctx, start)
	if err != nil {
		return err
	}
	left, _, err := m.freeSpace(ctx, images, math.MaxInt64, start)
	if err != nil {
		return err
	}
	m.collected(left, start)
	return nil
}

func (m *GCManager) collected(left []string, since time.Time) {
	if m.o.Collected != nil {
		m.o.Collected(left, since)
	}
}

// freeOld removes what has not been used for longer than the policy allows, once
// the manager itself has watched for that long, and returns what is left.
func (m *GCManager) freeOld(ctx context.Context, images []imageRecord, at time.Time) ([]imageRecord, error) {
	age := m.o.Policy.MaxAge
	if age == 0 || at.Sub(m.began) <= age {
		return images, nil
	}
	left := images[:0]
	var errs []error
	for _, r := range images {
		if at.Sub(r.lastUsed) <= age {
			left = append(left, r)
			continue
		}
		if err := m.free(ctx, &r); err != nil {
			errs, left = append(errs, err), append(left, r)
		}
	}
	if len(errs) > 0 {
		return left, fmt.Errorf("wanted to free images older than %v, encountered errors in image deletion: %w", age, utilerrors.NewAggregate(errs))
	}
	return left, nil
}

// freeSpace removes images until enough bytes are freed. It returns the ids of
// those that it looked at and left, and how much it freed.
func (m *GCManager) freeSpace(ctx context.Context, images []imageRecord, want int64, at time.Time) (left []string, freed int64, err error) {
	var errs []error
	for _, r := range images {
		if !r.lastUsed.Before(at) || at.Sub(r.firstDetected) < m.o.Policy.MinAge {
			left = append(left, r.id)
			continue
		}
		if err := m.free(ctx, &r); err != nil {
			errs, left = append(errs, err), append(left, r.id)
			continue
		}
		if freed += r.size; freed >= want {
			break
		}
	}
	if len(errs) > 0 {
		return left, freed, fmt.Errorf("wanted to free %d bytes, but freed %d bytes space with errors in image deletion: %w", want, freed, utilerrors.NewAggregate(errs))
	}
	return left, freed, nil
}

func (m *GCManager) free(ctx context.Context, r *imageRecord) error {
	m.o.Log("Removing image to free bytes imageID=%s size=%d", r.id, r.size)
	if err := m.o.Runtime.RemoveImage(ctx, r.id); err != nil {
		m.o.Log("Failed to remove image image=%s: %v", r.id, err)
		return err
	}
	delete(m.records, r.id)
	return nil
}

func bytesOf(v *uint64) int64 {
	if v == nil {
		return 0
	}
	return int64(min(*v, math.MaxInt64))
}

// share is percent hundredths of bytes, rounded down; upstream's product would
// overflow over 80 PiB.
func share(bytes int64, percent int) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(percent))
	q, _ := bits.Div64(hi, lo, 100)
	return int64(q)
}

// percent is how many hundredths of whole, which is not 0, part is, rounded down.
func percent(part, whole int64) int {
	hi, lo := bits.Mul64(uint64(part), 100)
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int(q)
}

// floorOf is the least number of available bytes with which the use of a file
// system is below a threshold.
func floorOf(capacity int64, high int) int64 {
	f := share(capacity, 101-high)
	if percent(f, capacity) < 101-high {
		f++
	}
	return f
}

// formatSize writes bytes as upstream's event does (formatSize of
// images/image_gc_manager.go).
func formatSize(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	v, units := float64(bytes)/unit, "KiB"
	for _, u := range [...]string{"MiB", "GiB", "TiB"} {
		if v < unit {
			break
		}
		v, units = v/unit, u
	}
	return fmt.Sprintf("%.1f %s", v, units)
}
