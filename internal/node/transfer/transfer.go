// Package transfer brings files to and from a node. Transfers are bounded in memory,
// resumed after a broken connection, and verified by SHA-256 at their destination.
//
//   - transfer.go: one binary to its staged name, by the method that suits it
//   - whole.go: the method that sends every byte, compressed if that is faster
//   - delta.go: the method that sends the difference to a file that the node has
//   - estimate.go, remember.go, probe.go: which method is faster on this link
//   - depot.go: the state that the sends of a run share
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
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The methods of sending a file, as reported.
const (
	MethodNone  = "none"  // the node had the file already
	MethodWhole = "whole" // all bytes of the file, possibly compressed
	MethodDelta = "delta" // the difference to a file that the node has
)

// File is a local file that Send brings to a node, with everything that decides how its bytes
// get there. A File is for one node, since Bases and Absent describe that node; all nodes of a
// run share the Depot.
type File struct {
	// Binary is the file on your machine, as it was when it was hashed: if the file has other bytes
	// when they are sent, Send returns a *ChangedError. Send does not use the field Machine.
	source.Binary

	// Label names the file in progress messages. The costs of its sends are remembered under this
	// name. If Label is empty, Send uses the base name of Path.
	Label string

	// SDDL is the owner and access list that the file has from its first moment on; empty: the folder
	// determines the owner and the access list.
	SDDL string

	// Depot enables differences. nil: all bytes are sent.
	Depot *Depot
	// Bases are files on the node that may differ little from this file, the likeliest first.
	Bases []Base
	// Absent reports that no earlier Send left the file, or a part of it, on the node, so that this
	// Send need not look for them.
	Absent bool
}

// Base is a file on the node.
type Base struct {
	Path   string
	SHA256 string // lower-case hexadecimal
	Size   int64  // bytes; 0: unknown, and assumed to equal the new file's size
}

// worthComparing reports whether comparing the file with another can be worth the time
// and the memory.
func (f File) worthComparing() bool { return f.Size >= smallestDiff && f.Size <= largestDiff }

// changed reports whether the file has changed since it was hashed.
func (f File) changed() bool {
	info, err := os.Stat(f.Path)
	return err != nil || info.Size() != f.Size || !info.ModTime().Equal(f.Modified)
}

// Result reports how a file was sent.
type Result struct {
	Method     string  `json:"method"`
	SizeBytes  int64   `json:"sizeBytes"`
	SentBytes  int64   `json:"sentBytes"`
	Seconds    float64 `json:"seconds"`
	Compressed bool    `json:"compressed"`
	// Variant and DiffSeconds are set for a difference. DiffSeconds is how long your machine took
	// to make the patch.
	Variant     string  `json:"variant"`
	DiffSeconds float64 `json:"diffSeconds"`
}

// sending is one Send.
type sending struct {
	node     *node.Node
	file     File
	depot    *Depot
	probed   int64 // bytes sent to measure the link
	reporter ui.Reporter
}

// costs returns the costs that the run has measured or, without a Depot, empty costs.
func (s *sending) costs() *costs {
	if s.depot == nil {
		return &costs{}
	}
	return &s.depot.costs
}

// And returns one result for two tries to send a file: r is the result of the first try, and next
// the result of the second. The bytes and times of both are added. Compressed is set if one of them
// is compressed. All other fields are from the second try.
func (r Result) And(next Result) Result {
	next.SentBytes += r.SentBytes
	next.Seconds += r.Seconds
	next.DiffSeconds += r.DiffSeconds
	next.Compressed = next.Compressed || r.Compressed
	return next
}

// Send brings the file to destination, and makes the folder of destination if it is missing. The
// bytes go to destination.part first; if the connection breaks, the next Send continues that part.
// destination itself never has an incomplete file: Send renames the part to destination after the
// node has verified the part's hash on its disk.
func Send(ctx context.Context, n *node.Node, file File, destination string, r ui.Reporter) (Result, error) {
	return send(ctx, n, file, Part(destination), destination, r)
}

func send(ctx context.Context, n *node.Node, file File, part, destination string, r ui.Reporter) (Result, error) {
	begun := time.Now()
	if file.Label == "" {
		file.Label = filepath.Base(file.Path)
	}
	s := &sending{node: n, file: file, depot: file.Depot, reporter: r}
	result, err := s.run(ctx, part, destination)
	result.SentBytes += s.probed
	result.SizeBytes, result.Seconds = file.Size, time.Since(begun).Seconds()
	return result, err
}

// Part returns the path that a file has until all of its bytes have arrived.
func Part(destination string) string { return destination + ".part" }

func (s *sending) run(ctx context.Context, part, destination string) (Result, error) {
	there, err := s.isThere(ctx, destination)
	if err != nil || there {
		return Result{Method: MethodNone}, err
	}
	wasted := int64(0)
	base, ok := s.base()
	if s.depot != nil {
		s.depot.cancelAhead(s.file.SHA256, base.SHA256)
	}
	if ok {
		result, err := (&difference{sending: s, base: base}).send(ctx, part, destination)
		if err == nil || connectionLost(err) || ctx.Err() != nil {
			return result, err
		}
		// Sending all bytes works whatever is wrong with the patch or its base. If the node's disk
		// is the problem, sending all bytes fails too and reports that problem.
		s.reporter.Debug("%s: sending all of it: %v", s.file.Label, err)
		if !errors.Is(err, errWhole) {
			defer s.depot.verifyBase(ctx, base.SHA256)
		}
		wasted = result.SentBytes
	}
	result, err := whole{}.send(ctx, s, part)
	result.SentBytes += wasted
	if err != nil {
		return result, s.explain(err)
	}
	if err := s.rename(ctx, part, destination); err != nil {
		return result, fmt.Errorf("give the sent %s its name: %w", s.file.Label, err)
	}
	return result, nil
}

// rename gives the file its name. If the file has an SDDL, only swdt uses its destination: so if
// the file at the destination cannot be replaced because another account has it open, rename
// removes that file first. The node itself waits for a file that is open for a moment: containerd
// reads the configuration of its pod network whenever a file appears in that folder.
func (s *sending) rename(ctx context.Context, part, destination string) error {
	rename := func() error {
		_, err := s.node.Files.Rename(ctx, &agentv1.RenameRequest{From: part, To: destination, Replace: true})
		return err
	}
	err := rename()
	if s.file.SDDL != "" && fault.IsHeld(err) {
		if _, err := s.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: destination}); err != nil {
			return err
		}
		err = rename()
	}
	return err
}

// isThere reports whether an earlier try has sent the whole file.
func (s *sending) isThere(ctx context.Context, path string) (bool, error) {
	if s.file.Absent {
		return false, nil
	}
	size, err := s.size(ctx, path)
	if err != nil || size != s.file.Size {
		return false, err
	}
	return s.hasHash(ctx, path)
}

// size returns the size of a file on the node; -1 if there is no such file.
func (s *sending) size(ctx context.Context, path string) (int64, error) {
	info, err := s.node.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	switch {
	case errors.Is(err, fault.ErrNotExist):
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

// explain returns a *ChangedError if the local file has changed, which is the likeliest reason for
// a wrong hash on the node. Otherwise it returns err.
func (s *sending) explain(err error) error {
	if s.file.changed() {
		return &ChangedError{Path: s.file.Path, Err: err}
	}
	return err
}

// ChangedError reports a local file that changed while it was sent.
type ChangedError struct {
	Path string
	Err  error
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed while it was sent: wait for the build to finish and push again", e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }
