// Package transfer brings files to and from a node: bounded in memory, resumed
// where a connection was cut, and verified by SHA-256 where they end up.
//
//   - transfer.go: one binary to its staged name, by the method that suits it
//   - whole.go: the method that sends every byte, compressed where that pays
//   - upload.go, download.go: files and folders for `swdt cp`
package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Methods of getting a file across.
const (
	MethodNone  = "none"  // it was there already
	MethodWhole = "whole" // all of its bytes, perhaps compressed
	MethodDelta = "delta" // the difference to what the node has
)

// File is a local file to send.
type File struct {
	Label    string // what progress calls it; empty: the base name of Path
	Path     string
	Size     int64
	SHA256   string // lower-case hexadecimal
	Modified time.Time
}

// Result is how a file got across.
type Result struct {
	Method     string  `json:"method"`
	SizeBytes  int64   `json:"sizeBytes"`
	SentBytes  int64   `json:"sentBytes"`
	Seconds    float64 `json:"seconds"`
	Compressed bool    `json:"compressed,omitempty"`
}

// method is one way to bring a file to a path on the node. It leaves either the
// whole, verified file there or what a next try can continue.
type method interface {
	send(ctx context.Context, s *sending, path string) (Result, error)
}

// sending is one Send.
type sending struct {
	node     *node.Node
	file     File
	reporter ui.Reporter
}

// Send brings the file to destination, in a folder that exists or is made. The
// bytes go to destination.part first, where the next Send continues after a
// cut connection; destination itself only ever has the whole file, whose hash
// was verified on the node's disk.
func Send(ctx context.Context, n *node.Node, file File, destination string, r ui.Reporter) (Result, error) {
	return send(ctx, n, file, Part(destination), destination, r)
}

func send(ctx context.Context, n *node.Node, file File, part, destination string, r ui.Reporter) (Result, error) {
	begun := time.Now()
	if file.Label == "" {
		file.Label = filepath.Base(file.Path)
	}
	s := &sending{node: n, file: file, reporter: r}
	result, err := s.run(ctx, part, destination)
	result.SizeBytes, result.Seconds = file.Size, time.Since(begun).Seconds()
	return result, err
}

// Part is where a file's bytes are until all of them have arrived.
func Part(destination string) string { return destination + ".part" }

func (s *sending) run(ctx context.Context, part, destination string) (Result, error) {
	there, err := s.isThere(ctx, destination)
	if err != nil || there {
		return Result{Method: MethodNone}, err
	}
	result, err := s.method().send(ctx, s, part)
	if err != nil {
		return result, s.explain(err)
	}
	_, err = s.node.Files.Rename(ctx, &agentv1.RenameRequest{From: part, To: destination, Replace: true})
	if err != nil {
		return result, fmt.Errorf("give the sent %s its name: %w", s.file.Label, err)
	}
	return result, nil
}

// method chooses how to send. There is one way so far; a difference to what
// stands at the destination will be another.
func (s *sending) method() method { return whole{} }

// isThere is whether an earlier try got the whole file across.
func (s *sending) isThere(ctx context.Context, path string) (bool, error) {
	size, err := s.size(ctx, path)
	if err != nil || size != s.file.Size {
		return false, err
	}
	return s.hasHash(ctx, path)
}

// size of a file on the node; -1 where there is none.
func (s *sending) size(ctx context.Context, path string) (int64, error) {
	info, err := s.node.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	switch {
	case errors.Is(err, host.ErrNotExist):
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("look for an earlier part of %s: %w", s.file.Label, err)
	case info.GetFolder():
		return 0, fmt.Errorf("%s on the node is a folder: remove it", path)
	}
	return info.GetSize(), nil
}

func (s *sending) hasHash(ctx context.Context, path string) (bool, error) {
	reply, err := s.node.Files.Hash(ctx, &agentv1.HashRequest{Path: path})
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", path, err)
	}
	return reply.GetSha256() == s.file.SHA256, nil
}

// explain names the likeliest reason why what arrived is not what was hashed.
func (s *sending) explain(err error) error {
	info, statErr := os.Stat(s.file.Path)
	if statErr != nil || info.Size() != s.file.Size || !info.ModTime().Equal(s.file.Modified) {
		return &ChangedError{Path: s.file.Path, Err: err}
	}
	return err
}

// ChangedError is a local file that did not stay the same while it was sent.
type ChangedError struct {
	Path string
	Err  error
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed while it was sent: wait for the build to finish and push again", e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }
