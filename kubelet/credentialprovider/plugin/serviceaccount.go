package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// identity is whom a plugin is asked for; the zero value is the node.
type identity struct {
	account *kubeletconfig.ImagePullServiceAccount
	token   string
	// annotations are those of the account that the plugin wants.
	annotations map[string]string
	// key tells identities apart in the cache.
	key string
}

// identify gets what the plugin wants to know of a pod's service account. The account
// is nil if it lacks an annotation that the plugin needs: by that accounts choose
// whether they have anything to do with the plugin, so it is no error.
func (p *provider) identify(ctx context.Context, pod *v1.Pod) (identity, error) {
	name := pod.Spec.ServiceAccountName
	if p.m.o.Accounts == nil {
		return identity{}, errors.New("failed to get service account: cannot get ServiceAccounts when kubelet is in standalone mode")
	}
	account, err := p.m.o.Accounts.GetServiceAccount(ctx, pod.Namespace, name)
	if err != nil {
		return identity{}, fmt.Errorf("failed to get service account: %w", err)
	}
	annotations := map[string]string{}
	for _, k := range p.attributes.RequiredServiceAccountAnnotationKeys {
		v, ok := account.Annotations[k]
		if !ok {
			return identity{}, nil
		}
		annotations[k] = v
	}
	for _, k := range p.attributes.OptionalServiceAccountAnnotationKeys {
		if v, ok := account.Annotations[k]; ok {
			annotations[k] = v
		}
	}
	// The UID is a condition: no token of an account that was made anew meanwhile.
	tr, err := p.m.o.Tokens.GetServiceAccountToken(ctx, pod.Namespace, name, &authenticationv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: account.UID},
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{p.attributes.ServiceAccountTokenAudience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	})
	if err != nil {
		return identity{}, fmt.Errorf("failed to get service account token: %w", err)
	}
	of := identity{
		account:     &kubeletconfig.ImagePullServiceAccount{UID: string(account.UID), Namespace: pod.Namespace, Name: name},
		token:       tr.Status.Token,
		annotations: annotations,
	}
	of.key = of.cacheKey(p.attributes.CacheType)
	return of, nil
}

// cacheKey tells accounts apart, and tokens if answers belong to them
// (generateServiceAccountCacheKey).
func (of *identity) cacheKey(t kubeletconfigv1.ServiceAccountTokenCacheType) string {
	key := fmt.Sprintf("%q/%q/%q/%s", of.account.Namespace, of.account.Name, of.account.UID, joined(of.annotations))
	if t == kubeletconfigv1.TokenServiceAccountTokenCacheType {
		key += "/token/" + hashed(of.token)
	}
	return key
}

// joined is a text that differs where annotations do.
func joined(annotations map[string]string) string {
	list := make([]string, 0, len(annotations))
	for k, v := range annotations { //drydock:unordered sorted below
		list = append(list, strconv.Quote(k)+"="+strconv.Quote(v))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// hashed stands for a token where the token itself is not to be kept; "" stays.
func hashed(token string) string {
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
