// Command kubesettings makes the table of the settings that the programs of Kubernetes take, by version: feature gates
// with their stages, flags of kubelet and kube-proxy on Windows, fields of their configuration.
//
//	kubesettings -out FILE     write the table
//	kubesettings -check FILE   fail if the table in the file differs from a new one
//
// It reads the source in the published zips of the modules, which `go mod download` fetches and verifies, and compiles
// nothing: the source of a Kubernetes that needs a newer Go is read too.
//
//   - main.go: the versions, and both modes
//   - source.go: the zips
//   - gates.go, flags.go, fields.go: what the source of one version has
//   - table.go: all versions in one table
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// release is one version of Kubernetes, and the versions of its modules.
type release struct {
	minor   int
	version string // of k8s.io/kubernetes, without "v1."
	proxy   string // of k8s.io/kube-proxy if it differs
}

// releases returns the versions of the table, the oldest first.
func releases() []release {
	return []release{
		{minor: 33, version: "33.13"},
		{minor: 34, version: "34.9"},
		{minor: 35, version: "35.6", proxy: "35.10"}, // the module proxy refuses k8s.io/kube-proxy v0.35.6
		{minor: 36, version: "36.3"},
		{minor: 37, version: "37.2"},
		{minor: 38, version: "38.0-beta.0"},
	}
}

// downloadLimit bounds the download of all modules, some 400 MB.
const downloadLimit = 30 * time.Minute

func main() {
	out := flag.String("out", "", "write the table to this `file`")
	check := flag.String("check", "", "compare the table in this `file` with a new one")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "kubesettings:", err)
		os.Exit(1)
	}
}

func run(out, check string) error {
	if (out == "") == (check == "") {
		return errors.New("name one file, with -out or -check")
	}
	ctx, cancel := context.WithTimeout(context.Background(), downloadLimit)
	defer cancel()
	made, err := makeTable(ctx, releases())
	if err != nil {
		return err
	}
	text, err := made.text()
	if err != nil {
		return err
	}
	if out != "" {
		return os.WriteFile(out, text, 0o644) //nolint:gosec // a file of the repository
	}
	committed, err := os.ReadFile(check)
	if err != nil {
		return err
	}
	if !bytes.Equal(committed, text) {
		return fmt.Errorf("%s differs from the published modules in %s; write it anew with -out, and read the difference",
			check, firstDifference(committed, text))
	}
	return nil
}

// firstDifference returns the first line that differs.
func firstDifference(committed, made []byte) string {
	before, after := bytes.Split(committed, []byte("\n")), bytes.Split(made, []byte("\n"))
	for i := range before {
		if i >= len(after) || !bytes.Equal(before[i], after[i]) {
			return fmt.Sprintf("line %d, %.200q", i+1, before[i])
		}
	}
	return fmt.Sprintf("line %d, which it lacks", len(before)+1)
}

func makeTable(ctx context.Context, all []release) (*table, error) {
	t := newTable()
	for _, r := range all {
		s, err := open(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := t.add(r.minor, s); err != nil {
			return nil, fmt.Errorf("read Kubernetes 1.%s: %w", r.version, err)
		}
	}
	return t, nil
}
