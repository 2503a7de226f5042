// Package timeline tells in words what the records of a run say, one line each, in columns that
// diff well.
//
// A record (trace.Record) is what happened as data: a kind, a verb, an object and fields. A line
// is made for two readers: somebody who wants to see why a pod did not become ready, and diff,
// which compares the timelines of two runs. For the second, columns have fixed widths and nothing
// of a line depends on the machine or the wall clock.
//
// timeline.go has the columns and what is left out because it says nothing new; words.go the
// words, by kind of record. A line says what changed, so each depends on those before it: Story
// is what they said. Lines are therefore rendered in order, and whoever wants a few of them anew
// has to tell a Story all the ones before.
//
// The package reads field names that are written elsewhere: by the API server (kinds api, pod,
// node, event), the fake runtime (cri, process), faults and actions. A field that it does not
// know is printed as key=value rather than lost.
package timeline
