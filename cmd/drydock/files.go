package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
)

// pattern compiles a flag's regular expression; nil if there is none. The empty
// one would match everything, which is the wrong default for --skip.
func pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return re, nil
}

// openInput opens a file; - is standard input.
func openInput(name string) (*os.File, error) {
	if name == "-" {
		return os.Stdin, nil
	}
	return os.Open(name)
}

// writable tells before the run what would keep a report from being written after
// it. A file that is there stays as it is until then. A file that is not there
// yet is made and removed again. A run of minutes whose report cannot be written would have been
// for nothing.
func writable(flag, file string) error {
	if file == "" {
		return nil
	}
	_, err := os.Stat(file)
	made := os.IsNotExist(err)
	// Without O_TRUNC: the old report stays if the run is cut short.
	w, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return badInput("%s: %w", flag, err)
	}
	_ = w.Close()
	if made {
		_ = os.Remove(file)
	}
	return nil
}

// writeReport writes a report to a file, if one is wanted. Its file is complete or the error says
// so: Close is where a full disk shows.
func writeReport(file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		_ = w.Close()
		return fmt.Errorf("%s: %w", file, err)
	}
	return w.Close()
}
