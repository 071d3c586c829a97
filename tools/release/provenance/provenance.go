// Package provenance states what the files of a release were made from: an in-toto statement with SLSA
// provenance, version 1.
//
// It is a statement of the machine that ran `make release`. No independent service has watched that
// machine, so it reaches SLSA build level 1 at most. It can be checked by building again: the same
// commit and the same Go give the same bytes.
package provenance

import (
	"encoding/json"

	"github.com/swdt-dev/swdt/tools/release/checksum"
)

// Build says how the files were made.
type Build struct {
	Described string // what `git describe` printed
	Commit    string // the whole hash
	Dirty     bool   // files differed from the commit
	Go        string // the version of Go, as go1.26.0
	Files     []checksum.Entry
}

const (
	repository = "https://github.com/swdt-dev/swdt"
	buildType  = repository + "/blob/main/docs/guides/install.md#provenance"
	builder    = repository + "/blob/main/docs/guides/install.md#unattested-machine"
)

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	InternalParameters   map[string]any `json:"internalParameters"`
	ResolvedDependencies []dependency   `json:"resolvedDependencies"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// Write returns the statement. It has no time of the build: two builds of one commit are equal. If files
// differed from the commit, the statement says so and does not claim that the commit was the source.
func (b Build) Write() ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, file := range b.Files {
		s.Subject = append(s.Subject, subject{file.Name, map[string]string{"sha256": file.SHA256}})
	}
	source := dependency{URI: "git+" + repository}
	if !b.Dirty {
		source.URI += "@" + b.Commit
		source.Digest = map[string]string{"gitCommit": b.Commit}
	}
	s.Predicate.BuildDefinition = buildDefinition{
		BuildType:          buildType,
		ExternalParameters: map[string]any{"target": "make release", "version": b.Described},
		InternalParameters: map[string]any{"go": b.Go, "changedSinceCommit": b.Dirty},
		ResolvedDependencies: []dependency{source,
			{URI: "pkg:generic/go@" + b.Go}},
	}
	s.Predicate.RunDetails.Builder.ID = builder
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}
