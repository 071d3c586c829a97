// Package artifact finds the published programs of a node: which URL, file or
// mirror each comes from, its published checksum, what is in its archive. It
// hands back local, verified files. Package source does the downloads, package
// blobs keeps what was in archives.
//
// # Where a component comes from
//
// Its source in the node file, or else where its project publishes that version:
//
//	containerd   https://github.com/containerd/containerd/releases/download/v1.7.12/containerd-1.7.12-windows-amd64.tar.gz
//	kubelet, …   https://dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe
//	crictl       https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz
//
// # Mirrors
//
// A mirror, which is a URL or a folder, stands in for every URL: nothing is asked
// of any other host. The file at https://dl.k8s.io/v1.36.3/bin/x.exe is looked for
// as MIRROR/dl.k8s.io/v1.36.3/bin/x.exe, as wget --mirror lays them out (a port is
// part of the host's name, after a +), then as MIRROR/x.exe; its checksum beside
// it. The second form holds one version only.
//
// # Checksums
//
// The node file's sha256 wins. Else what is published is verified by the checksum
// that is published beside it; without one it is refused, but for a mirror that is
// a folder, which is trusted as any other local file is. What comes over plain
// http and is verified by nothing that came another way is told of in a warning.
package artifact

import (
	"context"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/once"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Component is a program, or several that are published together.
type Component string

// The components that swdt knows where to find.
const (
	Containerd Component = "containerd" // with its shim and ctr
	Kubelet    Component = "kubelet"
	Kubeadm    Component = "kubeadm"
	Kubectl    Component = "kubectl"
	LogRunner  Component = "kube-log-runner"
	Crictl     Component = "crictl"
)

// Wish is a component that is wanted.
type Wish struct {
	Component Component
	// Version to get where Source is empty, with or without v.
	Version string
	// Source is the path or URL of an executable or a .tar.gz, or the path of a
	// folder. Default: where the component's project publishes this version.
	Source string
	// SHA256 of the file at Source or of what is published, hexadecimal.
	// Default for what is published: the checksum published beside it.
	SHA256 string
	// Arch is the node's processor as GOARCH. Default amd64.
	Arch string
	// Mirror is a URL or a folder that stands in for every URL.
	Mirror string
	// Field of the node file that has Source, for errors:
	// spec.kubernetes.kubelet.source.
	Field string
}

// File is one program of a component.
type File struct {
	Name string // on the node, such as containerd.exe
	source.Binary
}

// Set is a component's files.
type Set struct {
	Files   []File // the component's main program first
	Version string // without v; empty where Wish had none
	From    string // the URL or path that it came from, for people
}

// Options say what a Store works with; zero fields have defaults.
type Options = source.Options

// Store resolves wishes for a run, each once however many nodes have it. It is
// safe for concurrent use.
type Store struct {
	options Options
	sources *source.Set
	limits  limits

	wishes once.Map[Wish, Set]
}

// NewStore makes a Store.
func NewStore(options Options) *Store {
	return &Store{
		options: options, sources: source.NewSet(options),
		limits: limits{file: 1 << 30, total: 4 << 30},
	}
}

// Resolve gets a component for itself.
func Resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	return NewStore(Options{}).Resolve(ctx, wish, r)
}

// Resolve gets a component: without the network where the cache has it and its
// checksum is known.
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
		if err := file.For(wish.Arch); err != nil {
			return Set{}, fmt.Errorf("%s of %s: %w", file.Name, set.From, err)
		}
	}
	return set, nil
}
