// Package artifact gets the programs that a node needs, and the tests of Kubernetes: it finds their
// URLs, files or mirrors, verifies them by their published checksums, and unpacks their archives.
// It returns local, verified files. Package source does the downloads, package blobs keeps the
// files of archives.
//
// # Where a component comes from
//
// A component comes from its source in the node file. Without a source, it comes from the place
// where its project publishes that version:
//
//	containerd   https://github.com/containerd/containerd/releases/download/
//	             v1.7.12/containerd-1.7.12-windows-amd64.tar.gz
//	kubelet, …   https://dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe
//	crictl       https://github.com/kubernetes-sigs/cri-tools/releases/download/
//	             v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz
//	e2e.test     https://dl.k8s.io/v1.36.3/kubernetes-test-linux-amd64.tar.gz
//
// # Mirrors
//
// A mirror is a URL or a folder. It replaces every URL: no other host is contacted. swdt looks for
// the file at https://dl.k8s.io/v1.36.3/bin/x.exe in two places of the mirror. The first is
// MIRROR/dl.k8s.io/v1.36.3/bin/x.exe, the layout of wget --mirror; if the URL has a port, the
// folder is named HOST+PORT. The second is MIRROR/x.exe, which can hold only one version. In both
// places, swdt looks for the checksum beside the file.
//
// # Checksums
//
// The node file's sha256 takes precedence. Without it, a published file is verified by the checksum
// published beside the file. A published file without a checksum is refused, unless it is in a
// mirror that is a folder: such a mirror is trusted like any other local file. The file of a user's
// own source needs no checksum. A warning reports a file that came over plain http if no checksum
// from another channel verified the file.
package artifact

import (
	"context"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/obtain/once"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Component is a program, or several programs that are published together.
type Component string

// The components that swdt can find.
const (
	Containerd Component = "containerd" // with its shim and ctr
	Kubelet    Component = "kubelet"
	Kubeadm    Component = "kubeadm"
	Kubectl    Component = "kubectl"
	LogRunner  Component = "kube-log-runner"
	KubeProxy  Component = "kube-proxy"
	Crictl     Component = "crictl"
	// E2ETest is Kubernetes' end-to-end tests, for this machine and not for a node.
	E2ETest Component = "e2e.test"
)

// Wish is a wanted component.
type Wish struct {
	Component Component
	// Version is the version to get if Source is empty, with or without v.
	Version string
	// Source is the path or URL of an executable or a .tar.gz, or the path of a folder.
	// Default: the place where the component's project publishes this version.
	Source string
	// SHA256 is the hash, in hexadecimal, of the file at Source or of the published file. Default
	// for a published file: the checksum that is published beside the file.
	SHA256 string
	// Arch is the node's processor as GOARCH. Default amd64.
	Arch string
	// Mirror is a URL or a folder in which files are searched for instead of at their own URLs.
	Mirror string
	// Field is the name of the field that sets Source in the node file, such as
	// spec.kubernetes.kubelet.source. Errors contain this name.
	Field string
}

// File is one program of a component.
type File struct {
	Name string // the program's name on the node, such as containerd.exe
	source.Binary
}

// Set is a component's files.
type Set struct {
	Files   []File // the component's main program comes first
	Version string // the version without v; empty if the Wish had no version
	From    string // the URL or path that the files are from, for people
}

// Options configure a Store; zero fields have defaults.
type Options = source.Options

// Store resolves the wishes of a run, each once for any number of nodes. It is safe for concurrent use.
type Store struct {
	options Options
	sources *source.Set
	limits  limits

	wishes once.Map[Wish, Set]
}

// NewStore returns a Store.
func NewStore(options Options) *Store {
	return &Store{
		options: options, sources: source.NewSet(options),
		limits: limits{file: 1 << 30, total: 4 << 30},
	}
}

// Resolve is Store.Resolve with a new Store.
func Resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	return NewStore(Options{}).Resolve(ctx, wish, r)
}

// Resolve returns the files of a component. If the cache has the files and their checksum is
// known, Resolve does not use the network.
func (s *Store) Resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	wish.Version = strings.TrimPrefix(wish.Version, "v")
	wish.SHA256 = strings.ToLower(wish.SHA256)
	if wish.Arch == "" {
		wish.Arch = "amd64"
	}
	return s.wishes.Do(ctx, wish, func() (Set, bool, error) {
		set, err := s.resolve(ctx, wish, r)
		return set, true, err
	})
}

func (s *Store) resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	set := Set{Version: wish.Version}
	got, err := s.get(ctx, wish, r)
	if err != nil {
		return Set{}, err
	}
	set.From = got.from
	switch {
	case got.folder != "":
		set.Files, err = s.pick(ctx, wish, got.folder, r)
	case got.archive:
		set.Files, err = s.unpack(ctx, wish, got, r)
	default:
		set.Files, err = s.single(ctx, wish, got, r)
	}
	if err != nil {
		return Set{}, err
	}
	for _, file := range set.Files {
		if !wish.forNode() {
			break
		}
		if err := file.For(wish.Arch); err != nil {
			return Set{}, fmt.Errorf("%s of %s: %w", file.Name, set.From, err)
		}
	}
	return set, nil
}

// Plain returns the file of a wish whose Source is set, unchanged. It unpacks no archive, and the
// file need not be a program. If the wish has no SHA256, the file is not verified.
func (s *Store) Plain(ctx context.Context, wish Wish, r ui.Reporter) (file source.Binary, from string, err error) {
	wish.SHA256 = strings.ToLower(wish.SHA256)
	found, err := s.get(ctx, wish, r)
	if err == nil && found.folder != "" {
		err = fmt.Errorf("%s: %s is a folder: name the file in it", wish.field(), found.folder)
	}
	return found.binary, found.from, err
}
