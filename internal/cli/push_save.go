package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/push"
)

// checkSave returns an error if --save cannot write its file: before a node is contacted.
func (o *pushOptions) checkSave(documents []config.Document) error {
	switch {
	case o.save == "":
		return nil
	case len(o.files) == 0 || slices.ContainsFunc(documents, config.Document.OfFile):
		return usagef("--save writes a node file for a push without one: name the binary, as in push ./kubelet.exe, and a node that " +
			"no file has")
	case exists(o.save):
		return fileError(o.save, "exists, and is not replaced", "name another file, as in --save=FILE, or remove it")
	}
	return nil
}

// saved writes the node file that would do the same as a push that has succeeded on all nodes.
func (a *app) saved(o *pushOptions, documents []config.Document, results []fleet.Result[push.NodeResult]) error {
	if o.save == "" || a.global.dryRun || slices.ContainsFunc(results, func(r fleet.Result[push.NodeResult]) bool { return r.Err != nil }) {
		return nil
	}
	documents = slices.Clone(documents)
	for i := range documents {
		provisioners := documents[i].Node.Spec.Kubernetes.Provisioners
		for j := range provisioners {
			p := &provisioners[j]
			p.SourceURL = besideFile(o.save, p.SourceURL)
			for _, r := range results {
				if r.Name() == documents[i].Node.Metadata.Name {
					p.Destination, p.Service = placeOf(r.Value, p.Name)
				}
			}
		}
	}
	text, err := config.Brief(documents)
	if err != nil {
		return err
	}
	return a.writeStarter(o.save, text)
}

// placeOf returns the destination of a component of a result, and its service if that has another name.
func placeOf(result push.NodeResult, name string) (destination, service string) {
	for _, c := range result.Components {
		if c.Name != name {
			continue
		}
		if c.Service != nil && !strings.EqualFold(c.Service.Name, name) {
			service = c.Service.Name
		}
		return c.Destination, service
	}
	return "", ""
}

// besideFile returns a path as a node file names it: relative to the file's folder if it is below it.
func besideFile(file, path string) string {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	relative, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(relative) {
		return filepath.ToSlash(path)
	}
	return "./" + filepath.ToSlash(relative)
}
