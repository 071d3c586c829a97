// Package content reads the content of a rollout as a node file, so that it has the same defaults and obeys the
// same rules.
package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
)

// Document returns a content as the node file of a node. The error is an *Error if the content breaks a rule of
// node files.
func Document(node string, c fleetv1.Content) (config.Document, error) {
	spec := map[string]any{
		"credentials": map[string]any{"kubernetes": map[string]any{"node": node}},
		"kubernetes":  map[string]any{"provisioners": c.Provisioners},
	}
	if c.Setup != nil {
		spec["setup"] = c.Setup
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": node}, "spec": spec,
	})
	if err != nil {
		return config.Document{}, fmt.Errorf("read the content: %w", err)
	}
	documents, err := config.Load([]string{config.Stdin}, bytes.NewReader(text)) // JSON is YAML
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong):
		return config.Document{}, &Error{Problems: problemsOf(wrong)}
	case err != nil:
		return config.Document{}, fmt.Errorf("read the content: %w", err)
	}
	return documents[0], nil
}

// Error is returned for a content that breaks rules of node files.
type Error struct{ Problems []Problem }

// Problem is one broken rule.
type Problem struct {
	Field  string // of the NodeRollout, such as spec.content.setup.hosts[0].address
	What   string
	Remedy string
}

func (e *Error) Error() string {
	var all []string
	for _, p := range e.Problems {
		text := p.Field + ": " + p.What
		if p.Remedy != "" {
			text += "; " + p.Remedy
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// problemsOf returns the problems with the fields' names in a NodeRollout.
func problemsOf(wrong *config.Error) (all []Problem) {
	names := strings.NewReplacer("spec.setup", "spec.content.setup", "spec.kubernetes.provisioners",
		"spec.content.provisioners")
	for _, p := range wrong.Problems {
		all = append(all, Problem{Field: cmp.Or(names.Replace(p.Field), "spec.content"), What: p.What, Remedy: p.Remedy})
	}
	return all
}
