package envtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drydock-sim/drydock/drydocktest"
)

// failing is set in the environment of the process in which a spec shall fail.
const failing = "DRYDOCK_FAILING_SPEC"

// specs is the suite's, in which Spec runs the specs.
var specs *testing.T

// TestSpecs runs specs of Ginkgo's, each in a bubble of its own.
func TestSpecs(t *testing.T) {
	specs = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Specs")
}

var _ = Describe("a cluster of a spec's own", func() {
	three := drydocktest.Options{Nodes: 3}
	pod := func() *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "nginx"}}}}
	}
	running := func(t *testing.T, user *drydocktest.Client) func(Gomega) {
		return func(g Gomega) {
			got := pod()
			g.Expect(user.Get(t.Context(), client.ObjectKeyFromObject(got), got)).To(Succeed())
			g.Expect(got.Status.Phase).To(Equal(v1.PodRunning))
		}
	}
	It("has pods that run, by Gomega's clock", func() {
		began := time.Now()
		drydocktest.Spec(specs, three, func(t *testing.T, c *drydocktest.Cluster) {
			user := c.Client("user", scheme.Scheme)
			Expect(user.Create(t.Context(), pod())).To(Succeed())
			Eventually(running(t, user)).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
			Consistently(running(t, user)).WithTimeout(time.Hour).WithPolling(time.Minute).Should(Succeed())
		})
		Expect(time.Since(began)).To(BeNumerically("<", 30*time.Minute)) // of the machine's
	})
	It("has nothing of another's", func() {
		drydocktest.Spec(specs, three, func(t *testing.T, c *drydocktest.Cluster) {
			list := &v1.PodList{}
			Expect(c.Client("user", scheme.Scheme).List(t.Context(), list, "default", metav1.ListOptions{})).To(Succeed())
			Expect(list.Items).To(BeEmpty())
		})
	})
	It("tells Ginkgo what fails in it", func() {
		if os.Getenv(failing) == "" {
			Skip("run by TestFailingSpec")
		}
		drydocktest.Spec(specs, three, func(t *testing.T, c *drydocktest.Cluster) {
			Eventually(running(t, c.Client("user", scheme.Scheme))).WithTimeout(time.Hour).WithPolling(time.Minute).Should(Succeed())
		})
	})
})

// TestFailingSpec: a spec that fails is told as Ginkgo tells it, and the others run.
func TestFailingSpec(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSpecs$", "-ginkgo.no-color")
	cmd.Env = append(os.Environ(), failing+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("it passed:\n%s", out)
	}
	for _, want := range []string{"Timed out after 3600", "tells Ginkgo what fails in it", "Ran 3 of 3 Specs", "2 Passed | 1 Failed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
