package push

import (
	"context"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Collect obtains the binaries that pushes to the documents' nodes would send, for a set: those of
// the named components, or of all components if no name is given. Each component is in the result
// once. If two nodes want different binaries of a component, the error is a *DifferError.
func Collect(ctx context.Context, documents []config.Document, only []string, sources *source.Set,
	r ui.Reporter) ([]publish.Component, error) {
	var components []publish.Component
	first := map[string]int{}
	for _, doc := range documents {
		for _, p := range doc.Node.Spec.Kubernetes.Provisioners {
			if len(only) > 0 && !named(only, p.Name) {
				continue
			}
			binary, err := sources.Obtain(ctx, SourceOf(doc, p), r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			if at, known := first[strings.ToLower(p.Name)]; !known {
				first[strings.ToLower(p.Name)] = len(components)
				components = append(components, publish.Component{Name: p.Name, Version: p.Version,
					Destination: p.Destination, Title: baseName(p.Destination), Binary: binary})
			} else if components[at].Binary.SHA256 != binary.SHA256 {
				return nil, &DifferError{Component: p.Name, Node: doc.Node.Metadata.Name}
			}
		}
	}
	return components, nil
}

// baseName returns the last part of a path of Windows.
func baseName(path string) string { return path[strings.LastIndexAny(path, `/\:`)+1:] }

// DifferError is returned if nodes want different binaries of a component.
type DifferError struct{ Component, Node string }

func (e *DifferError) Error() string {
	return fmt.Sprintf("%s: node %s wants another binary than the nodes before: choose nodes with --node or --selector "+
		"that want the same", e.Component, e.Node)
}
