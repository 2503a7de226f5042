package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ResourceClaim is the kind of claims of devices.
const ResourceClaim kind.Kind = "ResourceClaim"

// resourceClaim returns the row of ResourceClaim
// (pkg/registry/resource/resourceclaim/strategy.go).
func resourceClaim() *kind.Info {
	type claim = resourcev1.ResourceClaim
	return &kind.Info{
		Kind: ResourceClaim, Meta: kind.MetaAgain, Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims",
		Namespaced: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[claim, *claim]{
			Defaults: func(c *claim) { setRequestDefaults(&c.Spec.Devices) },
			Halves: kind.SpecAndStatus(func(c *claim) (*resourcev1.ResourceClaimSpec, *resourcev1.ResourceClaimStatus) {
				return &c.Spec, &c.Status
			}),
			Keep: func(c, old *claim, sub string) bool {
				switch sub {
				case "":
					c.Status = old.Status
				case "status":
					c.Spec = old.Spec
					metav1.ResetObjectMetaForStatus(&c.ObjectMeta, &old.ObjectMeta)
					dropDeallocated(&c.Status, &old.Status)
				default:
					return false
				}
				return true
			},
			Check: func(c *claim) field.ErrorList {
				return validateDeviceClaim(&c.Spec.Devices, field.NewPath("spec", "devices"))
			},
			CheckUpdate: func(c, old *claim, sub string) field.ErrorList {
				if sub == "status" {
					return validateResourceClaimStatus(c, old)
				}
				return fields.Immutable(c.Spec, old.Spec, field.NewPath("spec"))
			},
			Table: []kind.Column[claim]{
				kind.NameColumn[claim](),
				{Name: "State", Type: "string", Description: "A summary of the current state (allocated, pending, reserved, etc.).", Cell: func(c *claim, _ time.Time) any { return stateOfClaim(c) }},
				kind.AgeColumn[claim](),
			},
		},
	}
}

func stateOfClaim(c *resourcev1.ResourceClaim) string {
	var out []string
	if c.DeletionTimestamp != nil {
		out = append(out, "deleted")
	}
	switch {
	case c.Status.Allocation == nil && c.DeletionTimestamp == nil:
		out = append(out, "pending")
	case c.Status.Allocation == nil:
	case len(c.Status.ReservedFor) > 0:
		out = append(out, "allocated", "reserved")
	default:
		out = append(out, "allocated")
	}
	return strings.Join(out, ",")
}

// deviceID names a device, or a share of one. Errors print it.
type deviceID struct{ Driver, Pool, Device, ShareID string }

func allocated(s *resourcev1.ResourceClaimStatus) map[deviceID]bool {
	out := map[deviceID]bool{}
	if s.Allocation == nil {
		return out
	}
	for _, r := range s.Allocation.Devices.Results {
		id := deviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
		if r.ShareID != nil {
			id.ShareID = string(*r.ShareID)
		}
		out[id] = true
	}
	return out
}

func idOfDevice(d *resourcev1.AllocatedDeviceStatus) deviceID {
	id := deviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}
	if d.ShareID != nil {
		id.ShareID = *d.ShareID
	}
	return id
}

// dropDeallocated takes out what is said of devices that a claim no longer has
// (dropDeallocatedStatusDevices).
func dropDeallocated(s, old *resourcev1.ResourceClaimStatus) {
	has, had := allocated(s), allocated(old)
	s.Devices = slices.DeleteFunc(s.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
		id := idOfDevice(&d)
		return had[id] && !has[id]
	})
	if len(s.Devices) == 0 {
		s.Devices = nil
	}
}

// validateResourceClaimStatus is ValidateResourceClaimStatusUpdate. What is allocated
// once stays so until it is given back as a whole.
func validateResourceClaimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	s, p := &c.Status, field.NewPath("status")
	reserved := p.Child("reservedFor")
	errs := eachOnce(s.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize, reserved,
		func(r *resourcev1.ResourceClaimConsumerReference) types.UID { return r.UID },
		func(r *resourcev1.ResourceClaimConsumerReference, p *field.Path) field.ErrorList {
			return required(p, "resource", r.Resource, "name", r.Name, "uid", string(r.UID))
		})
	has := allocated(s)
	errs = append(errs, eachOnce(s.Devices, -1, p.Child("devices"), idOfDevice, func(d *resourcev1.AllocatedDeviceStatus, p *field.Path) field.ErrorList {
		return validateDeviceStatus(d, has, p)
	})...)
	switch {
	case len(s.ReservedFor) == 0:
	case s.Allocation == nil:
		errs = append(errs, field.Forbidden(reserved, "may not be specified when `allocated` is not set"))
	case c.DeletionTimestamp != nil && slices.ContainsFunc(s.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.Contains(old.Status.ReservedFor, r)
	}):
		errs = append(errs, field.Forbidden(reserved, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"))
	}
	switch {
	case s.Allocation == nil:
	case old.Status.Allocation != nil:
		errs = append(errs, fields.Immutable(s.Allocation, old.Status.Allocation, p.Child("allocation"))...)
	default:
		errs = append(errs, validateAllocation(s.Allocation, namesOfRequests(&c.Spec.Devices), p.Child("allocation"))...)
	}
	return errs
}

// validateAllocation is validateAllocationResult.
func validateAllocation(a *resourcev1.AllocationResult, names requestNames, p *field.Path) field.ErrorList {
	devices := p.Child("devices")
	errs := each(a.Devices.Results, resourcev1.AllocationResultsMaxSize, devices.Child("results"), func(r *resourcev1.DeviceRequestAllocationResult, p *field.Path) field.ErrorList {
		errs := names.checkRef(&r.Request, p.Child("request"))
		errs = append(errs, validateDriverName(r.Driver, p.Child("driver"))...)
		errs = append(errs, validatePool(r.Pool, p.Child("pool"))...)
		errs = append(errs, fields.DNSLabel(r.Device, p.Child("device"))...)
		errs = append(errs, validateBindings(r.BindingConditions, r.BindingFailureConditions, p)...)
		if r.ShareID != nil {
			errs = append(errs, validateUUID(string(*r.ShareID), p.Child("shareID"))...)
		}
		return errs
	})
	errs = append(errs, each(a.Devices.Config, 2*resourcev1.DeviceConfigMaxSize, devices.Child("config"), func(c *resourcev1.DeviceAllocationConfiguration, p *field.Path) field.ErrorList {
		errs := fields.OneOf(c.Source, p.Child("source"), resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass)
		errs = append(errs, eachOnce(c.Requests, resourcev1.DeviceRequestsMaxSize, p.Child("requests"), itself, names.checkRef)...)
		return append(errs, validateDeviceConfig(&c.DeviceConfiguration, p)...)
	})...)
	if a.NodeSelector != nil {
		errs = append(errs, podspec.ValidateNodeSelector(a.NodeSelector, p.Child("nodeSelector"))...)
	}
	return errs
}

// validateUUID requires a UUID in its usual form. Of other forms that one can read,
// only the form is wrong.
func validateUUID(id string, p *field.Path) field.ErrorList {
	const form = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`
	is := func(form string) bool { return regexp.MustCompile("^(" + form + ")$").MatchString(id) }
	switch {
	case is(form) && id == strings.ToLower(id):
		return nil
	case is(form + `|[0-9a-fA-F]{32}|[uU][rR][nN]:[uU][uU][iI][dD]:` + form + `|\{` + form + `\}`):
		return field.ErrorList{field.Invalid(p, id, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters")}
	case slices.Contains([]int{32, 36, 38, 45}, len(id)):
		return field.ErrorList{field.Invalid(p, id, "error validating uid: invalid UUID format")}
	}
	return field.ErrorList{field.Invalid(p, id, fmt.Sprintf("error validating uid: invalid UUID length: %d", len(id)))}
}

// validateDeviceStatus checks what a driver says of a device that the claim has.
func validateDeviceStatus(d *resourcev1.AllocatedDeviceStatus, has map[deviceID]bool, p *field.Path) field.ErrorList {
	errs := validateDriverName(d.Driver, p.Child("driver"))
	errs = append(errs, validatePool(d.Pool, p.Child("pool"))...)
	errs = append(errs, fields.DNSLabel(d.Device, p.Child("device"))...)
	if d.ShareID != nil {
		errs = append(errs, validateUUID(*d.ShareID, p.Child("shareID"))...)
	}
	if id := idOfDevice(d); !has[id] {
		errs = append(errs, field.Invalid(p, id, "must be an allocated device in the claim"))
	}
	if n := len(d.Conditions); n > resourcev1.AllocatedDeviceStatusMaxConditions {
		errs = append(errs, field.TooMany(p.Child("conditions"), n, resourcev1.AllocatedDeviceStatusMaxConditions))
	}
	errs = append(errs, metavalidation.ValidateConditions(d.Conditions, p.Child("conditions"))...)
	if d.Data != nil && len(d.Data.Raw) > 0 {
		errs = append(errs, validateRaw(*d.Data, resourcev1.AllocatedDeviceStatusDataMaxLength, p.Child("data"))...)
	}
	if n := d.NetworkData; n != nil {
		p := p.Child("networkData")
		if len(n.InterfaceName) > resourcev1.NetworkDeviceDataInterfaceNameMaxLength {
			errs = append(errs, field.TooLong(p.Child("interfaceName"), "", resourcev1.NetworkDeviceDataInterfaceNameMaxLength))
		}
		if len(n.HardwareAddress) > resourcev1.NetworkDeviceDataHardwareAddressMaxLength {
			errs = append(errs, field.TooLong(p.Child("hardwareAddress"), "", resourcev1.NetworkDeviceDataHardwareAddressMaxLength))
		}
		errs = append(errs, eachOnce(n.IPs, resourcev1.NetworkDeviceDataMaxIPs, p.Child("ips"), itself, func(ip *string, p *field.Path) field.ErrorList {
			return validation.IsValidInterfaceAddress(p, *ip)
		})...)
	}
	return errs
}
