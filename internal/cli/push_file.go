package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
)

// pushedFile is a binary that the command line names.
type pushedFile struct {
	component string
	source    string // a path of this machine, or a URL
}

// nameAndFile matches NAME=FILE. A name has no separator, so that a URL with = is no such pair.
var nameAndFile = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)=(.+)$`)

// splitFileArguments splits the arguments of push into the names of components and the files. A file has a path, a
// URL, the ending .exe or the form NAME=FILE; the name of its component is otherwise that of the file without .exe.
func splitFileArguments(args []string) (names []string, files []pushedFile, err error) {
	for _, arg := range args {
		pair := nameAndFile.FindStringSubmatch(arg)
		switch {
		case pair != nil:
			files = append(files, pushedFile{pair[1], pair[2]})
		case strings.ContainsAny(arg, `/\`) || strings.EqualFold(filepath.Ext(arg), ".exe"):
			base := arg[strings.LastIndexAny(arg, `/\`)+1:]
			name := strings.ToLower(base)
			if !strings.HasSuffix(name, ".exe") || source.IsSet(arg) {
				return nil, nil, usagef("%s: the component is not clear from this name: write NAME=%[1]s", arg)
			}
			files = append(files, pushedFile{strings.TrimSuffix(name, ".exe"), arg})
		default:
			names = append(names, arg)
		}
	}
	for i, f := range files {
		if slices.ContainsFunc(files[:i], func(o pushedFile) bool { return strings.EqualFold(o.component, f.component) }) ||
			slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, f.component) }) {
			return nil, nil, usagef("%s is named twice", f.component)
		}
	}
	return names, files, nil
}

// unplaced has the components of each node whose destinations only the node knows, by the names of the nodes.
type unplaced map[string][]string

// withFiles returns the documents with the files of the command line as the sources of their components. A component of a
// node file keeps its other settings, but not the version and the hash of another file.
func withFiles(documents []config.Document, files []pushedFile) ([]config.Document, unplaced, error) {
	changed, open := slices.Clone(documents), unplaced{}
	if len(files) == 0 {
		return changed, open, nil
	}
	for i, d := range changed {
		provisioners := slices.Clone(d.Node.Spec.Kubernetes.Provisioners)
		for _, f := range files {
			from := f.source
			if source.IsLocal(from) && !strings.Contains(from, "://") {
				absolute, err := filepath.Abs(from)
				if err != nil {
					return nil, nil, fmt.Errorf("find %s: %w", from, err)
				}
				from = absolute
			}
			at := indexOf(provisioners, f.component)
			if at < 0 {
				at = len(provisioners)
				provisioners = append(provisioners, newProvisioner(f.component))
				open[d.Node.Metadata.Name] = append(open[d.Node.Metadata.Name], f.component)
			}
			p := &provisioners[at]
			p.SourceURL, p.Version, p.SHA256, p.Build = from, "", "", nil
		}
		changed[i].Node.Spec.Kubernetes.Provisioners = provisioners
		v1alpha1.SetDefaults(&changed[i].Node)
		if err := missingFiles(changed[i], files); err != nil {
			return nil, nil, err
		}
	}
	return changed, open, nil
}

// withComponents returns the documents with a component of each name for the nodes that no file has, and for those whose
// file names no binaries, as that of a node that joined: their services lead to the binaries.
func withComponents(documents []config.Document, names []string) ([]config.Document, unplaced) {
	return withNames(documents, names, func(d config.Document) bool {
		return !d.OfFile() || len(d.Node.Spec.Kubernetes.Provisioners) == 0
	})
}

// withServices returns the documents with a component of each name, also if the file of a node lacks it.
func withServices(documents []config.Document, names []string) ([]config.Document, unplaced) {
	return withNames(documents, names, func(config.Document) bool { return true })
}

func withNames(documents []config.Document, names []string, of func(config.Document) bool) ([]config.Document, unplaced) {
	changed, open := slices.Clone(documents), unplaced{}
	for i, d := range changed {
		if !of(d) {
			continue
		}
		provisioners := slices.Clone(d.Node.Spec.Kubernetes.Provisioners)
		for _, name := range names {
			if indexOf(provisioners, name) < 0 {
				provisioners = append(provisioners, newProvisioner(name))
				open[d.Node.Metadata.Name] = append(open[d.Node.Metadata.Name], name)
			}
		}
		changed[i].Node.Spec.Kubernetes.Provisioners = provisioners
		v1alpha1.SetDefaults(&changed[i].Node)
	}
	return changed, open
}

func indexOf(provisioners []v1alpha1.Provisioner, name string) int {
	return slices.IndexFunc(provisioners, func(p v1alpha1.Provisioner) bool { return strings.EqualFold(p.Name, name) })
}

func newProvisioner(name string) v1alpha1.Provisioner {
	return v1alpha1.Provisioner{Name: name, Destination: push.UsualDestination(name)}
}

// missingFiles returns an error if a file of the command line cannot be read.
func missingFiles(d config.Document, files []pushedFile) error {
	var components []string
	for _, f := range files {
		components = append(components, f.component)
	}
	for _, p := range push.LookAtSources(d, components) {
		return usagef("%s; build it first, or correct the path", p.What)
	}
	return nil
}
