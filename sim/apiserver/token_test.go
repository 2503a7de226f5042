package apiserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestAuthenticate: a token is good for its audiences, until its time is over or what it
// is bound to is gone.
func TestAuthenticate(t *testing.T) {
	r := newRig(t, 1, Options{})
	r.srv.OpenDoor()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	if _, err := r.srv.Create(&v1.ServiceAccount{ObjectMeta: meta("builder")}); err != nil {
		t.Fatal(err)
	}
	r.create(&v1.Pod{ObjectMeta: meta("p"), Spec: v1.PodSpec{ServiceAccountName: "builder", Containers: []v1.Container{{Name: "c", Image: "i"}}}})
	token := func(edit func(*authenticationv1.TokenRequestSpec)) string {
		tr := &authenticationv1.TokenRequest{}
		edit(&tr.Spec)
		out, err := r.srv.Tokens().Create("default", "builder", tr)
		if err != nil {
			t.Fatal(err)
		}
		return out.Status.Token
	}
	plain := token(func(*authenticationv1.TokenRequestSpec) {})
	other := token(func(s *authenticationv1.TokenRequestSpec) { s.Audiences = []string{"vault", "x"} })
	bound := token(func(s *authenticationv1.TokenRequestSpec) {
		s.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}
	})
	long := token(func(s *authenticationv1.TokenRequestSpec) { s.ExpirationSeconds = new(int64(7200)) })
	check := func(name, text, want string, audiences ...string) {
		t.Helper()
		u, meant, err := r.srv.Tokens().Authenticate(text, audiences)
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		case err != nil || u.Username != "system:serviceaccount:default:builder" || len(meant) != 1 || !slices.Contains(u.Groups, "system:serviceaccounts:default"):
			t.Errorf("%s: %+v, %v, %v", name, u, meant, err)
		}
	}
	check("plain", plain, "")
	check("for others", other, "is invalid for the target audiences")
	check("for one of its audiences", other, "", "vault", "y")
	check("no token", "x.y.z", "invalid bearer token")
	check("bound", bound, "")
	if u, _, _ := r.srv.Tokens().Authenticate(bound, nil); u.Extra["authentication.kubernetes.io/pod-name"][0] != "p" {
		t.Errorf("%+v", u)
	}
	if err := r.srv.Delete(KindPod, "default", "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	check("bound to a pod that is gone", bound, "has been invalidated")
	r.run(r.e.Now().Sub(loop.Epoch()) + 62*time.Minute)
	check("old", plain, "has expired")
	check("longer", long, "")
	if err := r.srv.Delete(KindServiceAccount, "default", "builder", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	check("without account", long, "not found")
}
