package operator

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drydock-sim/drydock/drydocktest"
)

// bugs has Explore look for planted bugs, each of which takes a minute or so.
var bugs = flag.Bool("bugs", false, "look for planted bugs")

// exploration looks for what goes wrong with an operator's shops.
func exploration(start func(c *drydocktest.Cluster)) drydocktest.Exploration {
	return drydocktest.Exploration{
		Options: fiveNodes, Process: "manager", Client: "shop-operator",
		Resources: []string{"shops", "configmaps", "deployments", "pods"}, Seeds: 200,
		Body: func(t *testing.T, c *drydocktest.Cluster) {
			start(c)
			user := c.Client("user", scheme)
			for i := range 3 {
				time.Sleep(45 * time.Second)
				if err := user.Create(t.Context(), shop(fmt.Sprint("s", i), 2)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			change(t, user, "s0", func(s *Shop) { s.Spec.Replicas, s.Spec.Greeting = 3, "good morning" })
			time.Sleep(30 * time.Second)
			if err := user.Delete(t.Context(), shop("s1", 0)); err != nil {
				t.Fatal(err)
			}
		},
		Invariant: func(t *testing.T, c *drydocktest.Cluster) { allIsWell(t, c, map[string]int32{"s0": 3, "s2": 2}) },
	}
}

// change changes a shop, again and again while others do.
func change(t *testing.T, user *drydocktest.Client, name string, how func(*Shop)) {
	for {
		s := shop(name, 0)
		if err := user.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		how(s)
		if err := user.Update(t.Context(), s); err == nil {
			return
		} else if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// allIsWell is what must be so when nothing goes wrong any more: these shops have so many
// pods ready and say so, one greeting each, and nothing is left of others.
func allIsWell(t *testing.T, c *drydocktest.Cluster, want map[string]int32) {
	user := c.Client("judge", scheme)
	shops, maps, pods := &ShopList{}, &v1.ConfigMapList{}, &v1.PodList{}
	for _, err := range []error{
		user.List(t.Context(), shops, "default", metav1.ListOptions{}),
		user.List(t.Context(), maps, "", metav1.ListOptions{LabelSelector: "shop"}),
		user.List(t.Context(), pods, "default", metav1.ListOptions{LabelSelector: "shop"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	greetings, said, running := map[string]int{}, map[string]string{}, map[string]int32{}
	for i := range maps.Items {
		greetings[maps.Items[i].Labels["shop"]]++
		said[maps.Items[i].Labels["shop"]] = maps.Items[i].Data["greeting"]
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp.IsZero() {
			running[p.Labels["shop"]]++
		}
	}
	for _, s := range shops.Items {
		n, ok := want[s.Name]
		if !ok {
			t.Errorf("the shop %s is still there: %+v", s.Name, s.ObjectMeta)
			continue
		}
		if s.Status.Ready != n || s.Status.ObservedGeneration != s.Generation {
			t.Errorf("the shop %s of generation %d says %+v, want %d ready", s.Name, s.Generation, s.Status, n)
		}
		if said[s.Name] != s.Spec.Greeting {
			t.Errorf("the shop %s greets with %q, want %q", s.Name, said[s.Name], s.Spec.Greeting)
		}
	}
	for name, n := range greetings {
		if _, ok := want[name]; !ok || n != 1 {
			t.Errorf("%s has %d greetings", name, n)
		}
	}
	for name, n := range running {
		if n != want[name] {
			t.Errorf("%s has %d pods, want %d", name, n, want[name])
		}
	}
	for name := range want {
		if greetings[name] == 0 || running[name] == 0 {
			t.Errorf("%s has %d greetings and %d pods", name, greetings[name], running[name])
		}
	}
}

// TestExplore: whatever goes wrong, all is well in the end.
func TestExplore(t *testing.T) {
	e := exploration(func(c *drydocktest.Cluster) { startManager(c, Options{}) })
	e.Seeds = 10
	drydocktest.Explore(t, e)
}

// planted are operators with bugs that are often made.
var planted = map[string]func(r *Reconciler) reconcile.Reconciler{
	// The greeting has a drawn name, and whether it was made is looked up in a cache, which
	// may not have it yet.
	"made-twice": func(r *Reconciler) reconcile.Reconciler { return madeTwice{r} },
	// That the greeting is there already is taken for a failure for good.
	"there-already": func(r *Reconciler) reconcile.Reconciler {
		return &thereAlready{Reconciler: r, failed: map[string]bool{}}
	},
	// A conflict is passed over, in the belief that an event will follow.
	"conflict-forgotten": func(r *Reconciler) reconcile.Reconciler { return conflictForgotten{r} },
	// The finalizer goes first, then what it was for.
	"finalizer-first": func(r *Reconciler) reconcile.Reconciler { return finalizerFirst{r} },
	// What was done is noted in memory before it is known to have been done.
	"noted-too-early": func(r *Reconciler) reconcile.Reconciler {
		return &notedTooEarly{Reconciler: r, done: map[client.ObjectKey]int64{}}
	},
}

// TestPlanted looks for one of the planted bugs, and fails when it has found it.
func TestPlanted(t *testing.T) {
	if !*bugs {
		t.Skip("fails: see TestExploreFindsBugs")
	}
	for name, with := range planted {
		t.Run(name, func(t *testing.T) {
			drydocktest.Explore(t, exploration(func(c *drydocktest.Cluster) { startPlanted(c, with) }))
		})
	}
}

// TestSound is the operator as it should be, under a plan that the environment has.
func TestSound(t *testing.T) {
	if os.Getenv(repeat) == "" {
		t.Skip("has no plan")
	}
	drydocktest.Explore(t, exploration(func(c *drydocktest.Cluster) { startManager(c, Options{}) }))
}

// repeat is the variable that has a plan repeated.
const repeat = "DRYDOCK_EXPLORE"

// found is the line that repeats what was found.
var found = regexp.MustCompile(repeat + `='([^']*)' go test`)

// TestExploreFindsBugs: each of the planted bugs is found within 200 seeds, the line that is
// printed repeats it, and the operator without the bug passes under the same plan.
func TestExploreFindsBugs(t *testing.T) {
	if !*bugs {
		t.Skip("takes minutes: use -bugs")
	}
	run := func(test, plan string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+test, "-test.v", "-test.timeout=30m", "-bugs")
		if cmd.Env = os.Environ(); plan != "" {
			cmd.Env = append(cmd.Env, repeat+"="+plan)
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name := range planted {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			out, err := run("^TestPlanted$/^"+name+"$", "")
			line := found.FindStringSubmatch(out)
			if err == nil || line == nil {
				t.Fatalf("not found: %v\n%s", err, out)
			}
			t.Logf("found in %v: %s", time.Since(began).Round(time.Second), line[1])
			if out, err := run("^TestPlanted$/^"+name+"$", line[1]); err == nil {
				t.Errorf("the line doesn't repeat it:\n%s", out)
			}
			if out, err := run("^TestSound$", line[1]); err != nil {
				t.Errorf("the sound operator fails, too: %v\n%s", err, out)
			}
		})
	}
}

// startPlanted runs an operator with a bug.
func startPlanted(c *drydocktest.Cluster, with func(*Reconciler) reconcile.Reconciler) {
	c.Go("manager", func(ctx context.Context) error {
		mgr, err := ctrl.NewManager(c.Config("shop-operator"), managerOptions(scheme))
		if err != nil {
			return err
		}
		same := true
		if err := owning(mgr).WithOptions(controller.Options{SkipNameValidation: &same}).Complete(with(&Reconciler{mgr.GetClient()})); err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

type madeTwice struct{ *Reconciler }

func (r madeTwice) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.steps(ctx, req, func(ctx context.Context, shop *Shop) error {
		list := &v1.ConfigMapList{}
		if err := r.List(ctx, list, client.InNamespace(shop.Namespace), client.MatchingLabels{"shop": shop.Name}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			list.Items[0].Data = map[string]string{"greeting": shop.Spec.Greeting}
			return r.Update(ctx, &list.Items[0])
		}
		cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, GenerateName: shop.Name + "-", Labels: map[string]string{"shop": shop.Name}}}
		if err := controllerutil.SetControllerReference(shop, cm, r.Scheme()); err != nil {
			return err
		}
		return r.Create(ctx, cm)
	}, r.cleanUp)
}

type thereAlready struct {
	*Reconciler
	failed map[string]bool
}

func (r *thereAlready) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.failed[req.Name] {
		return ctrl.Result{}, nil
	}
	return r.steps(ctx, req, func(ctx context.Context, shop *Shop) error {
		if shop.Status.ObservedGeneration > 0 {
			return r.greeting(ctx, shop)
		}
		cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name, Labels: map[string]string{"shop": shop.Name}}}
		if err := controllerutil.SetControllerReference(shop, cm, r.Scheme()); err != nil {
			return err
		}
		err := r.Create(ctx, cm)
		if apierrors.IsAlreadyExists(err) {
			r.failed[req.Name] = true
		}
		return err
	}, r.cleanUp)
}

type conflictForgotten struct{ *Reconciler }

func (r conflictForgotten) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil
	}
	result.RequeueAfter = 0
	return result, err
}

type finalizerFirst struct{ *Reconciler }

func (r finalizerFirst) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// The greeting has no owner, so that nothing else takes it away.
	return r.steps(ctx, req, func(ctx context.Context, shop *Shop) error {
		cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
			cm.Labels, cm.Data = map[string]string{"shop": shop.Name}, map[string]string{"greeting": shop.Spec.Greeting}
			return nil
		})
		return err
	}, func(ctx context.Context, shop *Shop) error {
		if err := r.cleanUp(ctx, shop); err != nil {
			return err
		}
		return client.IgnoreNotFound(r.Delete(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}))
	})
}

type notedTooEarly struct {
	*Reconciler
	done map[client.ObjectKey]int64 // the generation that was seen to
}

func (r *notedTooEarly) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.steps(ctx, req, func(ctx context.Context, shop *Shop) error {
		if r.done[req.NamespacedName] == shop.Generation {
			return nil
		}
		r.done[req.NamespacedName] = shop.Generation
		return r.greeting(ctx, shop)
	}, r.cleanUp)
}
