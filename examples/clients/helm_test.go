package clients

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"

	"github.com/drydock-sim/drydock/up"
)

// helmWait is how long Helm waits for what it installs.
const helmWait = time.Minute

// TestHelm installs a chart with a hook and a definition, upgrades it, rolls it back
// and takes it away.
func TestHelm(t *testing.T) {
	cluster := start(t)
	file := filepath.Join(t.TempDir(), "config")
	if err := cluster.WriteKubeconfig(file, up.DefaultContext); err != nil {
		t.Fatal(err)
	}
	settings := cli.New()
	settings.KubeConfig = file
	settings.SetNamespace("default")
	config := action.NewConfiguration()
	if err := config.Init(settings.RESTClientGetter(), "default", "secrets"); err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load("testdata/chart")
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 3*time.Minute)
	client := kubernetes.NewForConfigOrDie(cluster.Config())
	web := func() *appsv1.Deployment {
		t.Helper()
		d, err := client.AppsV1().Deployments("default").Get(ctx, "shop-web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}

	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.Timeout, install.WaitStrategy = "shop", "default", helmWait, kube.StatusWatcherStrategy
	if _, err := install.RunWithContext(ctx, chart, nil); err != nil {
		t.Fatalf("install: %v", err)
	}
	if d := web(); d.Status.ReadyReplicas != 2 {
		t.Errorf("installed: %d replicas are ready", d.Status.ReadyReplicas)
	}
	jobs, err := client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 0 {
		t.Errorf("the hook's job is still there: %d, %v", len(jobs.Items), err)
	}

	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy = "default", helmWait, kube.StatusWatcherStrategy
	if _, err := upgrade.RunWithContext(ctx, "shop", chart, map[string]any{"replicas": 3, "image": "web:2"}); err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	if d := web(); d.Status.ReadyReplicas != 3 || d.Spec.Template.Spec.Containers[0].Image != "web:2" {
		t.Errorf("upgraded: %d replicas of %s are ready", d.Status.ReadyReplicas, d.Spec.Template.Spec.Containers[0].Image)
	}

	rollback := action.NewRollback(config)
	rollback.Version, rollback.Timeout, rollback.WaitStrategy = 1, helmWait, kube.StatusWatcherStrategy
	if err := rollback.Run("shop"); err != nil {
		t.Fatalf("rollback: %v", err)
	}
	if d := web(); *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Errorf("rolled back: %d replicas of %s", *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image)
	}

	uninstall := action.NewUninstall(config)
	uninstall.Timeout, uninstall.WaitStrategy = helmWait, kube.StatusWatcherStrategy
	if _, err := uninstall.Run("shop"); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	noPods(ctx, t, client, "app=shop")
}

// noPods waits until no pods are selected.
func noPods(ctx context.Context, t *testing.T, client kubernetes.Interface, selector string) {
	t.Helper()
	var pods *v1.PodList
	until(ctx, t, "the pods are gone", func() bool {
		var err error
		pods, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
		return err == nil && len(pods.Items) == 0 || apierrors.IsNotFound(err)
	})
}
