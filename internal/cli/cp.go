package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
)

// anyNode before a colon stands for every selected node.
const anyNode = "node"

func (a *app) cpCommand() *cobra.Command {
	cmd := forNodes(&cobra.Command{
		Use:   "cp SRC… DST",
		Short: "Copy files and folders to or from the node",
		Long: `Copies a file or a folder to the node or from it, as cp -r does: into DST if DST
is a folder or ends in a slash, else as DST. A missing folder DST that ends in a
slash is created; with several SRCs, DST is a folder. Either the SRCs or DST are
on the node, written node:PATH, or NAME:PATH for the node of that name. Files that
are equal already are skipped, an interrupted copy continues, and each file is
verified before it gets its name.

Only you can read a new file on your machine, since it may hold secrets of the
node. The node is not trusted: nothing is written outside of DST.

With several nodes, a copy to them goes to each; a copy from them goes to a
folder in DST for each node.`,
		Example: examples(
			`cp kubelet.exe 'node:C:\k\'`, "",
			`cp 'node:C:\var\log\kubelet' logs/`, "",
			`cp a.log b.log 'win-1:C:\logs'`, "several, into a folder",
			`cp config.toml 'win-1:C:\Program Files\containerd\config.toml'`, "",
		),
		Args:              arguments(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completePlaces,
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return a.runCp(cmd.Context(), args[:len(args)-1], args[len(args)-1])
		},
	})
	cmd.Flags().BoolP("recursive", "r", false, "accepted for those who are used to it: folders are always copied whole")
	return cmd
}

// place is one end of a copy.
type place struct {
	node string // empty: this machine
	path string
}

func (p place) remote() bool { return p.node != "" }

// parsePlace reads NAME:PATH. A single letter before a colon is a drive of this
// machine, and ./a:b is a file of this machine.
func parsePlace(text string) place {
	name, path, ok := strings.Cut(text, ":")
	if !ok || len(name) < 2 || strings.ContainsAny(name, `/\`) {
		return place{path: text}
	}
	return place{node: name, path: path}
}

// parseCopy reads the arguments of cp. Several sources are on one side, and on the node of the same name.
func parseCopy(sources []string, destination string) (from []place, to place, err error) {
	to = parsePlace(destination)
	if len(sources) > 1 && !strings.HasSuffix(to.path, "/") && !strings.HasSuffix(to.path, `\`) && to.path != "" {
		to.path += "/" // several files go into a folder
	}
	names := map[string]string{}
	for _, source := range sources {
		p := parsePlace(source)
		switch {
		case p.remote() && to.remote():
			return nil, to, usagef("%s and %s are both on nodes: copy to this machine first, and from here to %[2]s", source,
				destination)
		case p.remote() == to.remote():
			return nil, to, usagef("either SRC or DST is on the node: write that one as node:C:\\path")
		case p.path == "" || to.path == "":
			return nil, to, usagef("the path after the colon is missing: write node:C:\\path")
		case len(from) > 0 && p.node != from[0].node:
			return nil, to, usagef("%s and %s are on two nodes: copy from one at a time", sources[0], source)
		}
		if err := checkPlaces(p, to); err != nil {
			return nil, to, err
		}
		name := strings.ToLower(strings.TrimRight(p.path, `/\`))
		name = name[strings.LastIndexAny(name, `/\`)+1:]
		if other, twice := names[name]; twice {
			return nil, to, usagef("%s and %s would be one file in %s", other, source, destination)
		}
		names[name] = source
		from = append(from, p)
	}
	return from, to, nil
}

func (a *app) runCp(ctx context.Context, sources []string, destination string) error {
	from, to, err := parseCopy(sources, destination)
	if err != nil {
		return err
	}
	documents, err := a.documents()
	if err != nil {
		return err
	}
	if documents, err = onNode(documents, from[0].node+to.node); err != nil {
		return err
	}
	s, err := a.sessionFor(documents)
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (transfer.CopyResult, error) {
		total, local := transfer.CopyResult{}, ""
		if !to.remote() {
			var err error
			if local, err = localPath(to.path, doc, len(documents) > 1); err != nil {
				return total, err
			}
		}
		for _, source := range from {
			one, err := transfer.CopyResult{}, error(nil)
			if to.remote() {
				one, err = transfer.Upload(ctx, n, source.path, to.path, r)
			} else {
				one, err = transfer.Download(ctx, n, source.path, local, r)
			}
			if total = total.And(one); err != nil {
				return total, err
			}
		}
		return total, nil
	})
	return a.printCopies(results)
}

// checkPlaces checks both ends before swdt contacts any node.
func checkPlaces(from, to place) error {
	remote := to.path
	if from.remote() {
		remote = from.path
	} else {
		info, err := os.Stat(from.path)
		switch {
		case err != nil:
			return usagef("%v", err)
		case !info.IsDir() && !info.Mode().IsRegular(): // a device has no size and may have no end
			return usagef("%s is neither a file nor a folder: save its output to a file first", from.path)
		}
	}
	if _, err := v1alpha1.CleanWindowsPath(remote); err != nil {
		return usagef("%v", err)
	}
	return nil
}

// onNode returns the node that is named before the colon. If the name is anyNode, it returns all nodes.
func onNode(documents []config.Document, name string) ([]config.Document, error) {
	for _, document := range documents {
		if document.Node.Metadata.Name == name {
			return []config.Document{document}, nil
		}
	}
	if name == anyNode {
		return documents, nil
	}
	return config.Select(documents, []string{name}, "")
}

// localPath returns the local path for one node's copy: path itself, or, if there are
// several nodes, a folder below path that has the node's name.
func localPath(path string, document config.Document, several bool) (string, error) {
	if !several {
		return path, nil
	}
	folder := filepath.Join(path, document.Node.Metadata.Name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", fmt.Errorf("make a folder for the node: %w", err)
	}
	return folder + string(filepath.Separator), nil
}

func (a *app) printCopies(results []fleet.Result[transfer.CopyResult]) error {
	report := transfer.NewCopyReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return fleet.Failures(results)
}
