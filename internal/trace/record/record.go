// Package record is what `swdt trace` writes down on a node: which services log
// more than they did, what was changed for it, and what was there before. It is
// written before the change is made, so that whoever comes next can tell what
// stands there, and those who compare a node with what they want (push, join) see
// it as it is without the trace.
package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Record has an entry for each service that is changed, or was about to be.
type Record struct {
	Services map[string]Service `json:"services"`
}

// Service is what is changed about a service.
type Service struct {
	// On is set once the change is complete; until then the node may have the one
	// or the other.
	On    bool      `json:"on"`
	Wish  Wish      `json:"wish"`
	Since time.Time `json:"since"` // by the node's clock
	By    string    `json:"by"`

	CommandLine Change `json:"commandLine"`
	// Config is the service's configuration file; nil: none is changed.
	Config *File `json:"config,omitempty"`
	// Earlier is the trace that this one is about to replace: until On is set, the
	// node may still have that. Before is the same in both.
	Earlier *Service `json:"earlier,omitempty"`
}

// Wish is how much a service is to log.
type Wish struct {
	// Level is containerd's log level, or kubelet's number.
	Level string `json:"level"`
	// OTLP is where containerd sends its spans, a URL; empty: nowhere.
	OTLP string `json:"otlp,omitempty"`
}

// Change is a text that was replaced by another.
type Change struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// File is a file that was replaced. Its contents are known by their Sum.
type File struct {
	Path string `json:"path"`
	// Kept is where the file of before is, byte for byte.
	Kept string `json:"kept"`
	Change
}

// Sum is the SHA-256 of a file's content, in hex; empty for a file that is not
// there, which is not the same as an empty one.
func Sum(content []byte, exists bool) string {
	if !exists {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read is a function that reads a file of the node; host.ErrNotExist where there
// is none.
type Read func(ctx context.Context, path string) ([]byte, error)

// Load reads the node's record; an empty one where there is none.
func Load(ctx context.Context, read Read) (Record, error) {
	r := Record{Services: map[string]Service{}}
	content, err := read(ctx, layout.TraceRecord)
	if errors.Is(err, host.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read what swdt trace changed: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read what swdt trace changed: %s is damaged: %w; what was there before is kept in %s: put it back by hand, and remove that folder",
			layout.TraceRecord, err, layout.Trace)
	}
	if r.Services == nil {
		r.Services = map[string]Service{}
	}
	return r, nil
}

// Encode is the record as it stands on the node.
func (r Record) Encode() ([]byte, error) {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(content, '\n'), nil
}

// CommandLine is a service's command line as it is without the trace, and whether
// that makes a difference.
func (r Record) CommandLine(service, is string) (plain string, traced bool) {
	for _, s := range r.all() {
		change := s.CommandLine
		if strings.EqualFold(s.name, service) && is == change.After && change.Before != change.After {
			return change.Before, true
		}
	}
	return is, false
}

// Kept is the file that has a file's content as it is without the trace, and
// whether that makes a difference. An empty name: there was no such file.
func (r Record) Kept(path string, content []byte) (kept string, traced bool) {
	for _, s := range r.all() {
		if s.Config == nil || !samePath(s.Config.Path, path) || s.Config.Before == s.Config.After || s.Config.After != Sum(content, true) {
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

// all are the services, and what they may still have of an earlier trace.
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

// OnError is a change that would lose what the trace has to put back.
type OnError struct {
	Service string
	What    string // that is to be changed
	By      string
	Since   time.Time
}

func (e *OnError) Error() string {
	return fmt.Sprintf("%s is to be changed while swdt trace is on for %s (since %s, by %s): run `swdt trace off %s` first, and switch it on again afterwards",
		e.What, e.Service, e.Since.UTC().Format("2006-01-02 15:04 UTC"), e.By, e.Service)
}

// Refuse is the error for a change of something that the trace has changed.
func (r Record) Refuse(service, what string) error {
	s := r.Services[strings.ToLower(service)]
	return &OnError{Service: service, What: what, By: s.By, Since: s.Since}
}
