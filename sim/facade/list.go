package facade

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corestorage "k8s.io/apiserver/pkg/storage"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// The errors of lists of the past, as those of upstream's
// k8s.io/apiserver/pkg/storage/etcd3/errors.go.
const (
	listExpired     = "The resourceVersion for the provided list is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
)

// parseVersion reads a resource version: 0 of "". Its error has no reason, as upstream's
// storage.InvalidError.
func parseVersion(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(s, 10, 64)
	if err == nil {
		return version, nil
	}
	return 0, unexplained(field.Invalid(field.NewPath("resourceVersion"), s, err.Error()))
}

// reached refuses what is to be at least as new as a version that is yet to come. Upstream
// waits for it, 3 s; here every read is of the present.
func reached(version, now uint64) error {
	if version > now {
		return corestorage.NewTooLargeResourceVersionError(version, now, 1)
	}
	return nil
}

// page is which part of a list is asked for, and as of which version.
type page struct {
	version uint64 // 0: the present one
	start   string // the first key; "": from the beginning
	limit   int64  // 0: none
	cont    bool   // goes on with an earlier list
}

// keyPrefix is what stands before keys when they are put into tokens.
const keyPrefix = "/"

// pageOf reads what a list asks for (ValidateListOptions of k8s.io/apiserver/pkg/storage,
// and the delegator of its cacher, which decides what is exact).
func pageOf(o *metainternalversion.ListOptions, now uint64) (p page, err error) {
	if o == nil {
		return page{}, nil
	}
	if o.ResourceVersion != "0" {
		p.limit = max(o.Limit, 0)
	}
	if o.Continue != "" {
		start, version, err := corestorage.DecodeContinue(o.Continue, keyPrefix)
		switch {
		case err != nil:
			return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		case o.ResourceVersion != "" && o.ResourceVersion != "0":
			return p, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		// A version below 0 is for the rest as it is now.
		p.start, p.version, p.cont = start[len(keyPrefix):], uint64(max(version, 0)), true
		return p, reached(p.version, now)
	}
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0 {
		p.version = version
	}
	return p, reached(version, now)
}

// list fills a list with what is selected, on the loop.
func (s *storage) list(api *apiserver.Server, list runtime.Object, namespace string, o *metainternalversion.ListOptions) error {
	now := api.Store().Version()
	p, err := pageOf(o, now)
	if err != nil {
		return err
	}
	all, err := s.f.watches.at(s.row.Kind, namespace, p.version)
	if err != nil {
		if p.cont && apierrors.IsResourceExpired(err) {
			return expiredContinue(p.start)
		}
		return err
	}
	if p.start != "" {
		i, _ := slices.BinarySearchFunc(all, p.start, func(o apiserver.Object, key string) int { return cmp.Compare(keyBelow(o, namespace), key) })
		all = all[i:]
	}
	sel, next := selectionOf(o), ""
	var items []runtime.Object
	for i, obj := range all {
		if sel.matches(s.row, obj) {
			items = append(items, s.item(obj))
		}
		if p.limit > 0 && int64(len(items)) == p.limit {
			if i < len(all)-1 {
				next = keyBelow(obj, namespace)
			}
			break
		}
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	version := cmp.Or(p.version, now)
	m.SetResourceVersion(strconv.FormatUint(version, 10))
	m.SetContinue("") // is shown where lists have no Go type
	if next != "" {
		token, err := continueToken(next, int64(version))
		if err != nil {
			return err
		}
		m.SetContinue(token)
		if sel.empty() {
			left := int64(len(all)) - p.limit
			m.SetRemainingItemCount(&left)
		}
	}
	return meta.SetList(list, items)
}

// continueToken is what a list is continued by, behind a key.
func continueToken(last string, version int64) (string, error) {
	return corestorage.EncodeContinue(keyPrefix+last+"\x00", keyPrefix, version)
}

// expiredContinue refuses a token whose version is forgotten, and gives another that goes
// on with what there is now.
func expiredContinue(start string) error {
	err := apierrors.NewResourceExpired(continueExpired)
	if token, e := corestorage.EncodeContinue(keyPrefix+start, keyPrefix, -1); e == nil {
		err.ErrStatus.ListMeta.Continue = token
	}
	return err
}
