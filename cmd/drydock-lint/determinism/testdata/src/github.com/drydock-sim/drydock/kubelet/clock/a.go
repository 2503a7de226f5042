package clock

import (
	t "time"

	_ "log" // want `import of log: it stamps lines`

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const period = 10 * t.Second

func bad(at t.Time) {
	_ = t.Now()  // want `use of time.Now: use the loop's clock and timers`
	now := t.Now // want `use of time.Now`
	_ = now
	t.Sleep(1)            // want `use of time.Sleep`
	t.After(1)            // want `use of time.After`
	t.AfterFunc(1, nil)   // want `use of time.AfterFunc`
	t.Tick(1)             // want `use of time.Tick`
	t.NewTimer(1)         // want `use of time.NewTimer`
	t.NewTicker(1)        // want `use of time.NewTicker`
	t.Since(at)           // want `use of time.Since`
	t.Until(at)           // want `use of time.Until`
	_ = t.Local           // want `use of time.Local: the machine's time zone`
	_ = at.Local()        // want `use of time.Time.Local`
	_ = metav1.Now()      // want `use of k8s.io/apimachinery/pkg/apis/meta/v1.Now`
	_ = metav1.NowMicro() // want `use of k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro`
}

type loop struct{}

func (loop) Now() t.Time      { return t.Time{} }
func (loop) Sleep(t.Duration) {}
func (loop) After(t.Duration) {}

func fine(l loop) {
	a := l.Now()
	l.Sleep(t.Second)
	l.After(period)
	_ = a.Sub(l.Now()).Truncate(t.Second)
	_ = t.Unix(0, 1).UTC()
	_, _ = t.Parse(t.RFC3339, "")
	_ = a.After(a)
	_ = metav1.NewTime(a)
	_ = metav1.Time{Time: a}
}

func logs() klog.Logger {
	klog.Infof("x") // want `use of k8s.io/klog/v2.Infof: it stamps lines`
	return klog.Logger{}
}
