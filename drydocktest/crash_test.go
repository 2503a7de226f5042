package drydocktest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// countingWriter makes a ConfigMap each second, and after it another one: what each of its
// lives made tells when that was killed.
func countingWriter(c *Cluster) {
	life := 0
	c.Go("writer", func(ctx context.Context) error {
		maps := kubernetes.NewForConfigOrDie(c.Config("writer")).CoreV1().ConfigMaps("default")
		life++
		for i := 0; ; i++ {
			time.Sleep(time.Second)
			for _, half := range []string{"first", "second"} {
				name := fmt.Sprintf("l%d-%02d-%s", life, i, half)
				if _, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
		}
	})
}

// made are the names of what a life of it made.
func made(t *testing.T, c *Cluster, life int) (names []string) {
	list, err := kubernetes.NewForConfigOrDie(c.Config("other")).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.Name[:2] == fmt.Sprintf("l%d", life) {
			names = append(names, m.Name)
		}
	}
	return names
}

// TestCrashAtWrite: the write at which a process is killed arrives or doesn't, the next one
// never.
func TestCrashAtWrite(t *testing.T) {
	for _, tc := range []struct {
		n       int
		arrives bool
		want    []string
	}{
		{3, true, []string{"l1-00-first", "l1-00-second", "l1-01-first"}},
		{4, false, []string{"l1-00-first", "l1-00-second", "l1-01-first"}},
		{1, false, nil},
	} {
		t.Run(fmt.Sprint(tc.n, tc.arrives), func(t *testing.T) {
			Run(t, Options{}, func(t *testing.T, c *Cluster) {
				countingWriter(c)
				c.CrashAtWrite("writer", tc.n, tc.arrives)
				time.Sleep(time.Minute)
				if got := made(t, c, 1); !slices.Equal(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if got := made(t, c, 2); len(got) < 50 {
					t.Errorf("anew it made %d", len(got))
				}
			})
		})
	}
}

// TestCrashWithin: the seed says when.
func TestCrashWithin(t *testing.T) {
	when := func(seed uint64) (took []time.Duration) {
		Run(t, Options{Seed: seed}, func(t *testing.T, c *Cluster) {
			countingWriter(c)
			for life := 1; life <= 2; life++ {
				began := time.Now()
				c.CrashWithin("writer", time.Minute)
				took = append(took, time.Since(began).Truncate(time.Second))
			}
		})
		return took
	}
	one, again, other := when(1), when(1), when(2)
	if !slices.Equal(one, again) || slices.Equal(one, other) || one[0] == one[1] {
		t.Errorf("%v, again %v, with another seed %v", one, again, other)
	}
	if slices.Max(one) > time.Minute+endsWithin {
		t.Errorf("%v", one)
	}
}
