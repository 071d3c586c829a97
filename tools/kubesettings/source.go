package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// The modules that have the settings.
const (
	kubernetesModule = "k8s.io/kubernetes"
	baseModule       = "k8s.io/component-base"
	kubeletModule    = "k8s.io/kubelet"
	proxyModule      = "k8s.io/kube-proxy"
	clientModule     = "k8s.io/client-go"
	serverModule     = "k8s.io/apiserver"
)

// source is the source of one version of Kubernetes.
type source struct {
	files  map[string]*zip.File // by module and path, such as k8s.io/kubelet/doc.go
	hashes map[string]string    // by module: its version and its hash
}

// open downloads the modules of a version, or takes them from Go's cache, and opens their zips.
func open(ctx context.Context, r release) (*source, error) {
	s := &source{files: map[string]*zip.File{}, hashes: map[string]string{}}
	for module, version := range map[string]string{
		kubernetesModule: "v1." + r.version, baseModule: "v0." + r.version, kubeletModule: "v0." + r.version,
		proxyModule: "v0." + cmp.Or(r.proxy, r.version), clientModule: "v0." + r.version, serverModule: "v0." + r.version,
	} {
		if err := s.add(ctx, module, version); err != nil {
			return nil, fmt.Errorf("open %s %s: %w", module, version, err)
		}
	}
	return s, nil
}

func (s *source) add(ctx context.Context, module, version string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Stdout = &out
	ran := cmd.Run()
	// For a module whose go line is newer than this Go, the command fails, but it has verified and stored the zip.
	var found struct{ Zip, Sum, Error string }
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return fmt.Errorf("run go mod download: %w", cmp.Or(ran, err))
	}
	if found.Zip == "" || found.Sum == "" {
		return fmt.Errorf("go mod download has no zip: %s", found.Error)
	}
	reader, err := zip.OpenReader(found.Zip)
	if err != nil {
		return err
	}
	s.hashes[module] = version + " " + found.Sum
	for _, f := range reader.File {
		if name, ok := strings.CutPrefix(f.Name, module+"@"+version+"/"); ok {
			s.files[module+"/"+name] = f
		}
	}
	return nil // the zips stay open until the program ends
}

// parse parses a file; nil if the version has none.
func (s *source) parse(name string) (*ast.File, error) {
	f, ok := s.files[name]
	if !ok {
		return nil, nil
	}
	reader, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
}

// parseFolder parses the files of a folder that are compiled for Windows, sorted by name, without tests.
func (s *source) parseFolder(folder string) ([]*ast.File, error) {
	var names []string
	for name := range s.files {
		if path.Dir(name) == folder && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
			!otherSystem(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []*ast.File
	for _, name := range names {
		f, err := s.parse(name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// otherSystem reports whether a file is for another system by its name. The names _other and _others of Kubernetes mean
// all systems without a file of their own.
func otherSystem(name string) bool {
	base := strings.TrimSuffix(path.Base(name), ".go")
	return strings.HasSuffix(base, "_linux") || strings.HasSuffix(base, "_darwin") || strings.HasSuffix(base, "_unix") ||
		base == "osflags_others" || base == "init_other" || base == "init_others"
}
