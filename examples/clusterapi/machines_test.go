package clusterapi

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/test/builder"

	"github.com/drydock-sim/drydock/drydocktest"
)

// definitions are Cluster API's own, and those of its generic provider.
func definitions(t *testing.T) []string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{builder.GenericInfrastructureMachineCRD, builder.GenericInfrastructureMachineTemplateCRD} {
		crd = crd.DeepCopy()
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, crd.Name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{filepath.Join(strings.TrimSpace(string(out)), "core", "config", "crd", "bases"), dir}
}

// run runs a test beside Cluster API, with a cluster "c" of three machines, out of six
// nodes. It begins when they are there.
func run(t *testing.T, body func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client)) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	drydocktest.Run(t, drydocktest.Options{Nodes: 6, CRDs: definitions(t)}, func(t *testing.T, c *drydocktest.Cluster) {
		c.Go("capi", func(ctx context.Context) error {
			mgr, err := NewManager(ctx, c.Config("capi"))
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		})
		c.Go("provider", func(ctx context.Context) error { return RunProvider(ctx, c.Config("provider")) })
		user := c.Client("user", scheme)
		makeCluster(t, c, user)
		c.Eventually(t, 10*time.Minute, func() bool { return available(t, user) == 3 })
		body(t, c, user)
	})
}

// makeCluster makes a cluster that is managed by itself, a deployment of machines "md" and a
// check of their health.
func makeCluster(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
	kubeconfig, err := os.ReadFile(c.Kubeconfig("capi-remote"))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: meta("c"), Spec: clusterv1.ClusterSpec{
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "drydock", Port: 443},
		InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: machines.Group, Kind: "GenericInfrastructureCluster", Name: "c"},
	}}
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": machines.GroupVersion().String(), "kind": "GenericInfrastructureMachineTemplate",
		"metadata": map[string]any{"namespace": "default", "name": "small"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}},
	}}
	templates := dynamic.NewForConfigOrDie(c.Config("user")).Resource(machines.GroupVersion().WithResource("genericinfrastructuremachinetemplates"))
	if _, err := templates.Namespace("default").Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []drydocktest.Object{
		cluster,
		&v1.Secret{ObjectMeta: meta("c-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}},
		&v1.Secret{ObjectMeta: meta("bootstrap"), Data: map[string][]byte{"value": []byte("nothing")}},
		&clusterv1.MachineDeployment{ObjectMeta: meta("md"), Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To[int32](3), Selector: metav1.LabelSelector{MatchLabels: labels},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))},
			}},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: "c", Version: "v1.36.0", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: machines.Group, Kind: "GenericInfrastructureMachineTemplate", Name: "small"},
				Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](120), NodeDeletionTimeoutSeconds: ptr.To[int32](10)},
			}},
		}},
		&clusterv1.MachineHealthCheck{ObjectMeta: meta("mhc"), Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: labels},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: v1.NodeReady, Status: v1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](300)},
			}},
		}},
	} {
		if err := user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	// What the controllers of clusters and control planes would say.
	cluster.Status.Initialization.InfrastructureProvisioned, cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true), ptr.To(true)
	cluster.Status.Phase = string(clusterv1.ClusterPhaseProvisioned)
	for _, what := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
		cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{
			Type: what, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(),
		})
	}
	if err := user.UpdateStatus(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// available is how many machines the deployment says can be used.
func available(t *testing.T, user *drydocktest.Client) int32 {
	return ptr.Deref(deployment(t, user).Status.AvailableReplicas, 0)
}

func deployment(t *testing.T, user *drydocktest.Client) *clusterv1.MachineDeployment {
	md := &clusterv1.MachineDeployment{}
	if err := user.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "md"}, md); err != nil {
		t.Fatal(err)
	}
	return md
}

// nodes are those of the machines, by the machines' names.
func nodes(t *testing.T, user *drydocktest.Client) map[string]string {
	list := &clusterv1.MachineList{}
	if err := user.List(t.Context(), list, "default", metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Status.NodeRef.Name
	}
	return out
}

// TestReplacesANodeThatDies: the machine of a node without power is deleted after five
// minutes and another takes its place, on another node.
func TestReplacesANodeThatDies(t *testing.T) {
	run(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		before := nodes(t, user)
		dead := ""
		for _, node := range before {
			dead = max(dead, node)
		}
		c.Node(dead).PowerCut(0)
		time.Sleep(20 * time.Minute)
		after := nodes(t, user)
		if len(after) != 3 || available(t, user) != 3 {
			t.Errorf("%d available of %v", available(t, user), after)
		}
		for name, node := range after {
			if node == dead {
				t.Errorf("%s is still on %s", name, dead)
			}
		}
		t.Logf("before %v, after %v; %d requests, hash %x", before, after, c.Requests(), c.Hash())
	})
}

// TestRollsOutThroughACrash: a new version replaces all machines, one after the other,
// though the manager is killed three times meanwhile.
func TestRollsOutThroughACrash(t *testing.T) {
	run(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		md := deployment(t, user)
		md.Spec.Template.Spec.Version = "v1.36.1"
		if err := user.Update(t.Context(), md); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(7 * time.Second)
			c.Crash("capi")
		}
		time.Sleep(15 * time.Minute)
		list := &clusterv1.MachineList{}
		if err := user.List(t.Context(), list, "default", metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.Spec.Version != "v1.36.1" {
				t.Errorf("%s has %s", m.Name, m.Spec.Version)
			}
		}
		if len(list.Items) != 3 || available(t, user) != 3 {
			t.Errorf("%d machines, %d available", len(list.Items), available(t, user))
		}
	})
}

// TestScalesThroughLostAnswers: machines are made as often as they are wanted, although
// the API's answers to half of the writes get lost for a while.
func TestScalesThroughLostAnswers(t *testing.T) {
	run(t, func(t *testing.T, c *drydocktest.Cluster, user *drydocktest.Client) {
		for _, verb := range []string{"create", "update", "patch"} {
			c.API().Fault(drydocktest.Fault{Client: "capi", Verb: verb, LoseAnswer: true, Probability: 0.5, For: 2 * time.Minute})
		}
		md := deployment(t, user)
		md.Spec.Replicas = ptr.To[int32](5)
		if err := user.Update(t.Context(), md); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		on := map[string]bool{}
		for _, node := range nodes(t, user) {
			on[node] = true
		}
		if all := nodes(t, user); len(all) != 5 || len(on) != 5 || available(t, user) != 5 {
			t.Errorf("%d available of %v", available(t, user), all)
		}
		infra, err := dynamic.NewForConfigOrDie(c.Config("user")).Resource(machines).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d machines of the provider's", len(infra.Items)) // one that is left over belongs to nobody
	})
}
