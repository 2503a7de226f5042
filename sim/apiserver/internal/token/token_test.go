package token

import (
	"reflect"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	a, err := NewSigner(1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewSigner(2)
	if err != nil {
		t.Fatal(err)
	}
	claims := &Claims{Audience: []string{Issuer}, Expiry: 10, Issuer: Issuer, Subject: "system:serviceaccount:a:b",
		Kubernetes: Kubernetes{Namespace: "a", ServiceAccount: Ref{"b", "u"}, Pod: &Ref{"p", "v"}}}
	text, err := a.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := a.Sign(claims); again != text {
		t.Error("the same claims make different tokens")
	}
	if got, err := a.Read(text); err != nil || !reflect.DeepEqual(got, claims) {
		t.Errorf("%+v, %v", got, err)
	}
	parts := strings.Split(text, ".")
	other, _ := a.Sign(&Claims{Subject: "system:serviceaccount:a:c"})
	for name, bad := range map[string]string{
		"nothing": "", "no token": "bad", "two parts": parts[0] + "." + parts[1], "no signature": parts[0] + "." + parts[1] + ".",
		"others' claims": parts[0] + "." + strings.Split(other, ".")[1] + "." + parts[2], "more": text + ".x", "long": text + strings.Repeat("A", maxToken),
	} {
		if _, err := a.Read(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := b.Read(text); err == nil {
		t.Error("another seed's token is taken")
	}
}
