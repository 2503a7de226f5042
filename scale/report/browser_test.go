package report_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser opens a page in headless Chromium and notes what it asks for and
// complains of. DRYDOCK_REPORT_DIR keeps the page and pictures of it.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium to look at the page with")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(2*time.Minute))
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx}
	if err := chromedp.Listen(ctx, b.take); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) take(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(ev.Request.URL, "data:") {
			b.requests = append(b.requests, ev.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprint(ev.Type))
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, ev.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, ev.Entry.Text)
	}
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// eval returns what a script comes to.
func eval[T any](t *testing.T, b *browser, script string) T {
	t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}

// command returns a step that makes a call of the protocol.
func command[P, R any](m cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, m, params)
		return err
	})
}

// tableScript returns a table's cells, the head first.
const tableScript = `[...document.getElementById("table-%s").rows].map(r => [...r.cells].map(c => c.innerText))`

func TestPage(t *testing.T) {
	b := newBrowser(t)
	dir := os.Getenv("DRYDOCK_REPORT_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	r := busyReport(t)
	writeDir(t, r, dir)
	url := "file://" + filepath.Join(dir, "index.html")
	b.do(t, command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}), chromedp.Navigate(url))

	t.Run("figures", func(t *testing.T) { checkFigures(t, b, dir) })
	t.Run("charts", func(t *testing.T) { checkCharts(t, b) })
	t.Run("layout", func(t *testing.T) { checkLayout(t, b, dir) })

	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.requests, []string{url}) {
		t.Errorf("the page asks for %v", b.requests)
	}
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %v", b.complaints)
	}
}

// checkFigures compares the page's tables with the files.
func checkFigures(t *testing.T, b *browser, dir string) {
	for _, name := range []string{"slos.csv", "startup.csv", "hot_spots.csv", "api_calls.csv"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := eval[[][]string](t, b, fmt.Sprintf(tableScript, name))
		if len(want) < 2 {
			t.Errorf("%s is empty", name)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the page has\n%v\nthe file\n%v", name, got, want)
		}
	}
	met := eval[string](t, b, `document.querySelector(".slo strong").innerText`)
	if met != "met" {
		t.Errorf("pod startup: %q", met)
	}
}

// seen is what a browser makes of a drawn series: its box within its figure,
// as shares of the drawing, and its colour.
type seen struct {
	Name, Color              string
	Top, Bottom, Left, Right float64
}

const seriesScript = `[...document.querySelectorAll("#chart-%s path")].filter(p => p.querySelector("title")).map(p => {
  const f = p.ownerSVGElement.getBoundingClientRect(), r = p.getBoundingClientRect(), s = getComputedStyle(p);
  return {Name: p.querySelector("title").textContent, Color: s.stroke == "none" ? s.fill : s.stroke,
    Top: (r.top-f.top)/f.height, Bottom: (r.bottom-f.top)/f.height, Left: (r.left-f.left)/f.width, Right: (r.right-f.left)/f.width};
})`

// checkCharts looks at what is drawn.
func checkCharts(t *testing.T, b *browser) {
	ids := eval[[]string](t, b, `[...document.querySelectorAll("svg[role=img]")].map(s => s.id)`)
	for _, id := range []string{"startup-share", "startup-over", "startup-parts", "phases", "rates", "disruptions", "conditions", "node-startup", "node-pods", "api-requests"} {
		if !slices.Contains(ids, "chart-"+id) {
			t.Errorf("no chart %s among %v", id, ids)
		}
	}
	unnamed := eval[[]string](t, b, `[...document.querySelectorAll("svg[role=img]")].filter(s => !s.getAttribute("aria-labelledby").split(" ").every(i => document.getElementById(i)?.textContent)).map(s => s.id)`)
	if len(unnamed) > 0 {
		t.Errorf("charts without a title or description: %v", unnamed)
	}
	series := eval[[]seen](t, b, fmt.Sprintf(seriesScript, "phases"))
	// Drawn from the highest of the stack down: the last is Running alone.
	if n := len(series); n < 2 || series[n-1].Name != "Running" || series[n-1].Top > 0.2 || series[n-1].Right < 0.9 {
		t.Errorf("pods by phase: %+v", series)
	}
	desc := eval[string](t, b, `document.getElementById("desc-phases").textContent`)
	if !strings.Contains(desc, "Running: most 280, at the end 280") {
		t.Errorf("pods by phase: %s", desc)
	}
	outside := eval[[]string](t, b, `[...document.querySelectorAll("svg[role=img] text")].filter(e => { const f = e.ownerSVGElement.getBoundingClientRect(), r = e.getBoundingClientRect();
  return r.left < f.left-1 || r.right > f.right+1 || r.top < f.top-1 || r.bottom > f.bottom+1 }).map(e => e.ownerSVGElement.id + ": " + e.textContent)`)
	if len(outside) > 0 {
		t.Errorf("labels that are cut: %v", outside)
	}
}

// checkLayout looks at the page on a desk, a phone, paper and in the dark.
func checkLayout(t *testing.T, b *browser, dir string) {
	light := eval[[]seen](t, b, fmt.Sprintf(seriesScript, "rates"))
	var dark []seen
	for _, v := range []struct {
		name          string
		width, height int64
		media         string
		dark          bool
	}{{"desk", 1280, 900, "", false}, {"dark", 1280, 900, "", true}, {"phone", 375, 700, "", false}, {"paper", 794, 1123, "print", false}} {
		scheme := "light"
		if v.dark {
			scheme = "dark"
		}
		b.do(t, chromedp.EmulateViewport(v.width, v.height), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: v.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}))
		over := eval[int](t, b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
		if over > 0 {
			t.Errorf("%s: the page is %d px too wide", v.name, over)
		}
		if v.dark {
			dark = eval[[]seen](t, b, fmt.Sprintf(seriesScript, "rates"))
		}
		if os.Getenv("DRYDOCK_REPORT_DIR") != "" {
			shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, v.name+".png"), shot, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Every colour is the page's to choose.
	if left := eval[[]string](t, b, `[...document.querySelectorAll("svg[role=img] [style]")].map(e => e.getAttribute("style")).filter(s => s.includes("#"))`); len(left) > 0 {
		t.Errorf("fixed colours: %v", left[:1])
	}
	if len(light) == 0 || len(dark) != len(light) || light[0].Color == dark[0].Color {
		t.Errorf("the dark page has the colours of the light one: %v, %v", light, dark)
	}
}
