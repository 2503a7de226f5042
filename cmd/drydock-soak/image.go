//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// makeImage writes an image of a static busybox as an archive that runtimes
// import. It is made here and not pulled, since a soak needs no network and no
// registry. The config names linux/amd64, which is what the busybox must be.
func makeImage(file, busybox, ref string) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	data, err := os.ReadFile(busybox)
	if err != nil {
		return fmt.Errorf("--busybox: %w", err)
	}
	// Which commands it has depends on how it was built.
	list, err := exec.Command(busybox, "--list").Output() // the program that was given
	if err != nil {
		return fmt.Errorf("--busybox: %s --list: %w", busybox, err)
	}
	files, err := rootfs(data, strings.Fields(string(list)))
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture = "linux", "amd64"
	cfg.Config = v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, img)
}

// rootfs is the image's files: busybox, its commands as links, a folder for
// anybody's files. Times and owners are fixed, so that the same busybox makes the
// same image. Commands are symbolic links: busybox goes by the name that it is called by.
func rootfs(busybox []byte, commands []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	entries := []*tar.Header{
		{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(busybox))},
	}
	for _, c := range commands {
		if c != "busybox" {
			entries = append(entries, &tar.Header{Name: path.Join("bin", c), Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777})
		}
	}
	for _, h := range entries {
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(busybox); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
