// Package artifact finds the published programs of a node: which URL, file or
// mirror each comes from, its published checksum, what is in its archive. It
// hands back local, verified files. Package source does the downloads.
package artifact

import (
	"context"

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
	// Source is the path or URL of an executable, a .tar.gz, or (path) a folder.
	// Default: where the component's project publishes this version.
	Source string
	// SHA256 of the file at Source or of what is published, hexadecimal.
	// Default for what is published: the checksum published beside it.
	SHA256 string
	// Arch is the node's processor as GOARCH. Default amd64.
	Arch string
	// Mirror stands in for every URL: see Mirror in doc.go.
	Mirror string
	// Field is the node file's field that errors speak of, such as
	// spec.kubernetes.containerd.
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
type Store struct{ sources *source.Set }

// NewStore makes a Store.
func NewStore(options Options) *Store { return &Store{sources: source.NewSet(options)} }

// Resolve gets a component for itself.
func Resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	return NewStore(Options{}).Resolve(ctx, wish, r)
}

// Resolve gets a component: from the cache where it can, without the network.
func (s *Store) Resolve(ctx context.Context, wish Wish, r ui.Reporter) (Set, error) {
	panic("being written")
}
