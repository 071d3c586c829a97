// Package tracerecord describes the record that `swdt trace` keeps on a node. The record lists the
// services that log more than before, the changes that were made for this purpose, and the state
// before the changes. swdt writes the record before each change, so that a later swdt can identify
// the changes. From the record, commands that compare a node with a wanted state (push, join)
// compute the state that the node has without the trace.
package tracerecord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Record has an entry for each service that the trace has changed or was about to change.
type Record struct {
	Services map[string]Service `json:"services"`
}

// Service records the changes to one service.
type Service struct {
	// On is set once the change is complete; until then the service may be changed or unchanged.
	On    bool      `json:"on"`
	Wish  Wish      `json:"wish"`
	Since time.Time `json:"since"` // by the node's clock
	By    string    `json:"by"`

	CommandLine Change `json:"commandLine"`
	// Config is the service's configuration file; nil: it is unchanged.
	Config *File `json:"config,omitempty"`
	// Earlier is the service's earlier trace, which the new one is about to replace. Until On is
	// set, the node may still have the earlier trace. The fields named Before have the same values
	// in both traces.
	Earlier *Service `json:"earlier,omitempty"`
}

// Wish is the wanted log output of a service.
type Wish struct {
	// Level is containerd's log level, or the kubelet's verbosity, which is a number.
	Level string `json:"level"`
	// OTLP is the URL to which containerd sends its spans; empty: it sends none.
	OTLP string `json:"otlp,omitempty"`
}

// Change is a text and its replacement.
type Change struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// File is a file that was replaced. Before and After are the Sums of its contents, not the contents
// themselves.
type File struct {
	Path string `json:"path"`
	// Kept is the path of an exact copy of the original file.
	Kept string `json:"kept"`
	Change
}

// Sum returns the SHA-256 of a file's content in hex. For a missing file it returns "", so that a
// missing file differs from an empty one.
func Sum(content []byte, exists bool) string {
	if !exists {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read is a function that reads a file of the node; it returns fault.ErrNotExist if the file does not exist.
type Read func(ctx context.Context, path string) ([]byte, error)

// Load reads the node's record. If the node has no record, Load returns an empty one.
func Load(ctx context.Context, read Read) (Record, error) {
	r := Record{Services: map[string]Service{}}
	content, err := read(ctx, layout.TraceRecord)
	if errors.Is(err, fault.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the record of swdt trace: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read the record of swdt trace: %s is damaged: %w; restore the settings by hand "+
			"from their copies in %s, and remove that folder",
			layout.TraceRecord, err, layout.Trace)
	}
	if r.Services == nil {
		r.Services = map[string]Service{}
	}
	return r, nil
}

// Encode returns the record as it is stored on the node.
func (r Record) Encode() ([]byte, error) {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(content, '\n'), nil
}

// CommandLine returns a service's command line without the trace's change. The parameter `is` holds
// the service's present command line; traced reports whether the trace changed the command line.
func (r Record) CommandLine(service, is string) (plain string, traced bool) {
	for _, s := range r.all() {
		change := s.CommandLine
		if strings.EqualFold(s.name, service) && is == change.After && change.Before != change.After {
			return change.Before, true
		}
	}
	return is, false
}

// Untraced returns the path of a copy of a configuration file. The copy does not have the trace's
// changes. The parameter `content` is the file's present content; the result `traced` reports
// whether the trace has changed the file. If traced is true and kept is empty, the file did not
// exist before the trace.
func (r Record) Untraced(path string, content []byte) (kept string, traced bool) {
	for _, s := range r.all() {
		if s.Config == nil || !samePath(s.Config.Path, path) || s.Config.Before == s.Config.After ||
			s.Config.After != Sum(content, true) {
			continue
		}
		if s.Config.Before == "" {
			return "", true
		}
		return s.Config.Kept, true
	}
	return "", false
}

type named struct {
	name string
	Service
}

// all returns the recorded services. If a service's trace was about to be replaced, all also returns its earlier
// trace.
func (r Record) all() (all []named) {
	for name, s := range r.Services {
		all = append(all, named{name, s})
		if s.Earlier != nil {
			all = append(all, named{name, *s.Earlier})
		}
	}
	return all
}

func samePath(a, b string) bool {
	slashed := func(p string) string { return strings.ReplaceAll(p, "/", `\`) }
	return strings.EqualFold(slashed(a), slashed(b))
}

// OnError reports that swdt refuses a change that would lose data that the trace must restore.
type OnError struct {
	Service string
	What    string // the thing to be changed
	By      string
	Since   time.Time
}

func (e *OnError) Error() string {
	return fmt.Sprintf("%s is to be changed while swdt trace is on for %s (since %s, by %s): run `swdt trace off %s` "+
		"first, and switch it on again afterwards",
		e.What, e.Service, e.Since.UTC().Format("2006-01-02 15:04 UTC"), e.By, e.Service)
}

// Refuse returns an *OnError. Callers need it if they are about to change something, and
// CommandLine or Untraced reports that the trace has changed it. The parameter `what` describes the
// thing to be changed. Refuse itself does not check this, and never returns nil.
func (r Record) Refuse(service, what string) error {
	s := r.Services[strings.ToLower(service)]
	return &OnError{Service: service, What: what, By: s.By, Since: s.Since}
}
