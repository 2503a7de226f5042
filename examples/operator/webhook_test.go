package operator

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drydock-sim/drydock/drydocktest"
)

// TestWebhooks: the API asks the manager's webhook server, which stands in the process, and
// refuses what it can't ask about while the manager is down.
func TestWebhooks(t *testing.T) {
	o := fiveNodes
	o.Manifests = []string{"config/webhook"}
	drydocktest.Run(t, o, func(t *testing.T, c *drydocktest.Cluster) {
		c.Go("manager", func(ctx context.Context) error {
			server := drydocktest.NewWebhookServer[healthz.Checker](c, "shop-webhook.default.svc")
			mgr, err := NewManager(c.Config("shop-operator"), Options{SameName: true, Webhooks: server})
			if err != nil {
				return err
			}
			// What would listen at ports of its own is served by name.
			c.Serve("shop-metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
			c.Serve("shop-health", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{"webhooks": server.StartedChecker()}}))
			return mgr.Start(ctx)
		})
		user := c.Client("user", scheme)
		c.Eventually(t, time.Minute, func() bool { return user.Create(t.Context(), shop("a", 3)) == nil })
		silent := shop("b", 1)
		silent.Spec.Greeting = ""
		if err := user.Create(t.Context(), silent); err != nil || silent.Spec.Greeting != "welcome to b" {
			t.Errorf("%v, the greeting is %q", err, silent.Spec.Greeting)
		}
		if err := user.Create(t.Context(), shop("c", 21)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "at most 20 replicas") {
			t.Errorf("21 replicas: %v", err)
		}
		got := shop("a", 0)
		if err := user.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, got); err != nil {
			t.Fatal(err)
		}
		got.Spec.Replicas = 0
		if err := user.Update(t.Context(), got); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "by way of one") {
			t.Errorf("3 to 0 replicas: %v", err)
		}
		c.Eventually(t, 2*time.Minute, func() bool { return ready(t, user, "a") == 3 })
		if text := page(t, c, "http://shop-metrics/metrics"); !strings.Contains(text, `controller_runtime_reconcile_total{controller="shop"`) {
			t.Errorf("metrics: %s", text)
		}
		if text := page(t, c, "http://shop-health/readyz"); !strings.Contains(text, "ok") {
			t.Errorf("health: %s", text)
		}

		go c.CrashFor("manager", time.Minute)
		time.Sleep(5 * time.Second)
		if err := user.Create(t.Context(), shop("d", 1)); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("while the manager is down: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := user.Create(t.Context(), shop("d", 1)); err != nil {
			t.Errorf("when the manager is up again: %v", err)
		}
	})
}

// page reads what is served.
func page(t *testing.T, c *drydocktest.Cluster, url string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
