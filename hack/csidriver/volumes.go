//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volumes are the driver's, in a directory: of each ID.json says what is known of it, and
// its data is ID.img, or the directory ID.
type volumes struct {
	dir string
	mu  sync.Mutex
}

type volume struct {
	Size   int64 // bytes
	Dir    bool
	Node   string // that it is published to
	Staged bool
}

// checkID refuses what can't be a file's name.
func checkID(id string) error {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return status.Errorf(codes.InvalidArgument, "%q is no name of a volume", id)
	}
	return nil
}

func internal(what, id string, err error) error {
	return status.Errorf(codes.Internal, "%s %s: %v", what, id, err)
}

func (s *volumes) meta(id string) string { return filepath.Join(s.dir, id+".json") }

// data is where a volume's data is.
func (s *volumes) data(id string, v *volume) string {
	if v.Dir {
		return filepath.Join(s.dir, id)
	}
	return filepath.Join(s.dir, id+".img")
}

// load reads a volume: NotFound if there is none.
func (s *volumes) load(id string) (*volume, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.meta(id))
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s", id)
	}
	v := &volume{}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, internal("read volume", id, err)
	}
	return v, nil
}

func (s *volumes) save(id string, v *volume) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.meta(id)+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(s.meta(id)+".new", s.meta(id))
}

// change has fn change what is known of a volume.
func (s *volumes) change(id string, fn func(v *volume) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.load(id)
	if err != nil {
		return err
	}
	if err := fn(v); err != nil {
		return err
	}
	if err := s.save(id, v); err != nil {
		return internal("keep volume", id, err)
	}
	return nil
}

func (s *volumes) create(id string, v *volume) error {
	if v.Dir {
		if err := os.MkdirAll(s.data(id, v), 0o770); err != nil {
			return err
		}
	} else if err := s.resize(id, v); err != nil {
		return err
	}
	return s.save(id, v)
}

// resize gives a volume's file its size.
func (s *volumes) resize(id string, v *volume) error {
	if v.Dir {
		return nil
	}
	f, err := os.OpenFile(s.data(id, v), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(v.Size), f.Close())
}

func (s *volumes) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(os.RemoveAll(filepath.Join(s.dir, id)), os.RemoveAll(filepath.Join(s.dir, id+".img")), os.RemoveAll(s.meta(id)))
}
