package onnode

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// documentOf returns a content as a node file. It is read as one, so it has the same defaults and obeys
// the same rules.
func documentOf(node string, c fleetv1.Content) (config.Document, error) {
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
	if err != nil {
		return config.Document{}, fmt.Errorf("read the content: %w", err)
	}
	return documents[0], nil
}
