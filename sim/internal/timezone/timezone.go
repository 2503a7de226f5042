// Package timezone knows the world's time zones from a database of its own, so
// that a schedule means the same on every machine. zoneinfo.zip is the one that
// the Go distribution has in lib/time, built from the IANA Time Zone Database,
// which is in the public domain.
package timezone

import (
	"archive/zip"
	_ "embed" // the database
	"fmt"
	"io"
	"strings"
	"time"
)

//go:embed zoneinfo.zip
var database string

// Load returns the zone of an IANA name ("Europe/Berlin", "UTC"). The error for
// a name that there is not is worded as time.LoadLocation's.
func Load(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	r, err := zip.NewReader(strings.NewReader(database), int64(len(database)))
	if err != nil {
		return nil, fmt.Errorf("time zone database: %w", err)
	}
	for _, f := range r.File {
		if f.Name != name || f.FileInfo().IsDir() {
			continue
		}
		data, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("time zone %s: %w", name, err)
		}
		return time.LoadLocationFromTZData(name, data)
	}
	return nil, fmt.Errorf("unknown time zone %s", name)
}

func read(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
