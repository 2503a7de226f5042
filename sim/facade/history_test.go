package facade

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestHistory: a list of the past is what was listed then, however much has changed, and
// is refused when it is forgotten.
func TestHistory(t *testing.T) {
	api, f := onLoop(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	then := map[uint64][]string{}
	var versions []uint64
	names := func(version uint64) []string {
		list, err := f.watches.at(apiserver.KindConfigMap, "", version)
		if err != nil {
			t.Fatalf("at %d: %v", version, err)
		}
		var out []string
		for _, o := range list {
			out = append(out, o.GetNamespace()+"/"+o.GetName()+"="+o.(*v1.ConfigMap).Data["v"])
		}
		return out
	}
	for i := range 3 * minHistory {
		m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: []string{"default", "default-x", "kube-public"}[rnd.IntN(3)], Name: fmt.Sprint("m", rnd.IntN(20))}, Data: map[string]string{"v": strconv.Itoa(i)}}
		if i == 0 {
			if _, err := api.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default-x"}}); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		switch _, e := api.Get(apiserver.KindConfigMap, m.Namespace, m.Name); {
		case e != nil:
			_, err = api.Create(m)
		case rnd.IntN(2) == 0:
			err = api.Delete(apiserver.KindConfigMap, m.Namespace, m.Name, metav1.DeleteOptions{})
		default:
			_, err = api.Update(m, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := api.Loop().RunUntil(api.Loop().Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		v := api.Store().Version()
		then[v] = names(0)
		versions = append(versions, v)
	}
	last := then[versions[len(versions)-1]]
	if a, b := slices.IndexFunc(last, in("default/")), slices.IndexFunc(last, in("default-x/")); a < b {
		t.Errorf("not in the order of etcd's keys: %q", last)
	}
	h := f.watches.of(apiserver.KindConfigMap)
	if h.from == 0 || len(h.changes) < minHistory || len(h.changes) > maxHistory {
		t.Fatalf("%d changes from %d on", len(h.changes), h.from)
	}
	for _, v := range versions {
		if v < h.from {
			if _, err := f.watches.at(apiserver.KindConfigMap, "", v); !apierrors.IsResourceExpired(err) {
				t.Fatalf("at %d, known from %d on: %v", v, h.from, err)
			}
		} else if got := names(v); !slices.Equal(got, then[v]) {
			t.Fatalf("at %d: %q, want %q", v, got, then[v])
		}
	}
	f.Forget()
	if _, err := f.watches.at(apiserver.KindConfigMap, "", versions[len(versions)-2]); !apierrors.IsResourceExpired(err) {
		t.Errorf("after all was forgotten: %v", err)
	}
	if got := names(versions[len(versions)-1]); !slices.Equal(got, last) {
		t.Errorf("the present version: %q", got)
	}
}

// in reports whether a name begins so.
func in(prefix string) func(string) bool {
	return func(s string) bool { return strings.HasPrefix(s, prefix) }
}

// TestHistoryIsBounded: changes of the last minute are kept beyond the least number, but
// not without end.
func TestHistoryIsBounded(t *testing.T) {
	for age, want := range map[time.Duration][2]int{time.Hour: {minHistory, 2 * minHistory}, time.Millisecond: {maxHistory / 2, maxHistory}} {
		h := newHistory(0)
		for i := range 5 * maxHistory {
			h.add(apiserver.Change{Version: uint64(i + 1)}, int64(i)*int64(age))
		}
		if n := len(h.changes); n < want[0] || n > want[1] || h.changes[0].Version != h.from+1 {
			t.Errorf("one each %v: %d changes from %d on, want %v", age, n, h.from, want)
		}
	}
}

// onLoop returns an API and its facade, whose loop nobody runs.
func onLoop(t *testing.T) (*apiserver.Server, *Facade) {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	api := apiserver.New(apiserver.Options{Loop: l})
	return api, New(Options{API: api, Door: NewRealDoor(l, nil)})
}

// TestPages: a list in pages is of one version; a token that is too old is refused with
// one that isn't.
func TestPages(t *testing.T) {
	api, f := onLoop(t)
	s := f.kinds.find(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).storage
	make := func(ns, name string) {
		if _, err := api.Create(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"a", "b", "c"} {
		make("default", n)
		make("kube-public", n)
	}
	page := func(o metainternalversion.ListOptions) (*v1.ConfigMapList, string) {
		list := &v1.ConfigMapList{}
		if err := s.list(api, list, "", &o); err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, m := range list.Items {
			out += m.Namespace[:1] + m.Name + " "
		}
		return list, out
	}
	first, got := page(metainternalversion.ListOptions{Limit: 2})
	if got != "da db " || first.Continue == "" || *first.RemainingItemCount != 4 {
		t.Errorf("first %s %+v", got, first.ListMeta)
	}
	if err := api.Delete(apiserver.KindConfigMap, "default", "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	make("default", "aa")
	second, got := page(metainternalversion.ListOptions{Limit: 3, Continue: first.Continue})
	if got != "dc ka kb " || second.ResourceVersion != first.ResourceVersion || *second.RemainingItemCount != 1 {
		t.Errorf("second %s %+v", got, second.ListMeta)
	}
	if last, got := page(metainternalversion.ListOptions{Limit: 3, Continue: second.Continue}); got != "kc " || last.Continue != "" {
		t.Errorf("last %s %+v", got, last.ListMeta)
	}
	f.Forget()
	err := s.list(api, &v1.ConfigMapList{}, "", &metainternalversion.ListOptions{Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("with an old token: %v", err)
	}
	rest, got := page(metainternalversion.ListOptions{Continue: err.(*apierrors.StatusError).ErrStatus.Continue})
	if got != "ka kb kc " || rest.ResourceVersion == first.ResourceVersion {
		t.Errorf("the rest %s %+v", got, rest.ListMeta)
	}
	for o, want := range map[metainternalversion.ListOptions]string{
		{ResourceVersion: "x"}: `invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`,
		{Continue: "x"}:        "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
		{Continue: first.Continue, ResourceVersion: "1"}:      "specifying resource version is not allowed when using continue",
		{ResourceVersion: "999"}:                              fmt.Sprintf("Timeout: Too large resource version: 999, current: %d", api.Store().Version()),
		{ResourceVersion: "1", ResourceVersionMatch: "Exact"}: listExpired,
	} {
		if err := s.list(api, &v1.ConfigMapList{}, "", &o); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// TestWatchList: initial events end with a bookmark, and another comes each minute.
func TestWatchList(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		if _, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		yes, seconds := true, int64(90)
		w, err := maps.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var got []string
		for ev := range w.ResultChan() {
			m := ev.Object.(*v1.ConfigMap)
			got = append(got, fmt.Sprint(ev.Type, m.Name, m.Annotations[metav1.InitialEventsAnnotationKey], " ", time.Since(began).Round(time.Second)))
		}
		if want := []string{"ADDEDone 0s", "BOOKMARKtrue 0s", "BOOKMARK 1m0s", "BOOKMARK 1m28s"}; !slices.Equal(got, want) || time.Since(began).Round(time.Second) != 90*time.Second {
			t.Errorf("%q until %v, want %q until 90 s", got, time.Since(began), want)
		}
		w, err = maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "9999", SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil {
			t.Fatal(err)
		}
		if ev := <-w.ResultChan(); ev.Type != watch.Error || apierrors.FromObject(ev.Object).Error() == "" {
			t.Errorf("from a version to come: %v", ev)
		}
	})
}

// TestWatchOfGoneKind: a watch of custom resources ends with their definition.
func TestWatchOfGoneKind(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := dynamic.NewForConfigOrDie(config)
		def := &unstructured.Unstructured{}
		if err := def.UnmarshalJSON([]byte(widgets)); err != nil {
			t.Fatal(err)
		}
		defs := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if _, err := defs.Create(t.Context(), def, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w, err := clients.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := defs.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if ev, ok := <-w.ResultChan(); ok || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), ev)
		}
	})
}

// TestSlowWatch: who doesn't read is cut off and counted, and costs nothing any more;
// what a watch begins with doesn't count.
func TestSlowWatch(t *testing.T) {
	api, f := onLoop(t)
	s := f.kinds.find(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).storage
	make := func(i int) {
		if _, err := api.Create(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * watchBuffer {
		make(i)
	}
	w, err := f.watches.add(context.Background(), s, "", &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range watchBuffer {
		make(2*watchBuffer + i)
	}
	if w.ended() || f.CutWatches() != 0 {
		t.Errorf("ended %v, %d cut off", w.ended(), f.CutWatches())
	}
	make(3 * watchBuffer)
	if !w.ended() || f.CutWatches() != 1 || w.queue != nil {
		t.Errorf("one more: ended %v, %d cut off, %d queued", w.ended(), f.CutWatches(), len(w.queue))
	}
	w.run()
	if _, ok := <-w.ResultChan(); ok {
		t.Error("is told something")
	}
}
