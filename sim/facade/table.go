package facade

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// ConvertToTable implements rest.TableConvertor, by the columns of the kind's row. What
// a row of the table says of its object beyond the cells, the handlers fill in.
func (s *storage) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table, now := &metav1.Table{}, s.f.clock.now()
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = s.row.Columns()
	}
	add := func(obj runtime.Object) error {
		o := obj.(apiserver.Object)
		table.Rows = append(table.Rows, metav1.TableRow{Cells: s.row.Cells(o, now), Conditions: s.row.RowConditions(o), Object: runtime.RawExtension{Object: obj}})
		return nil
	}
	if !meta.IsListType(obj) {
		if m, err := meta.CommonAccessor(obj); err == nil {
			table.ResourceVersion = m.GetResourceVersion()
		}
		return table, add(obj)
	}
	if m, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	}
	return table, meta.EachListItem(obj, add)
}

// clock remembers the cluster's time, for handlers off the API's loop: as of the
// last crossing, which is that of their own request unless another came in between.
type clock struct{ nanos atomic.Int64 }

// set is called on the API's loop.
func (c *clock) set(t time.Time) { c.nanos.Store(t.UnixNano()) }

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }
