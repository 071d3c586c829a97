// Package kindtest simulates kind's library for tests. Its clusters are files in a folder, so that
// several processes can share the clusters. No container runs.
package kindtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
)

// Kind keeps its clusters in a folder. The fields with the errors of operations must not change
// while an operation runs.
type Kind struct {
	// Folder holds a file for each cluster, and one for kind's network.
	Folder string
	// Server is the URL of every cluster's API server.
	Server string
	// Kubeconfig is the file with the access to every cluster; empty: anonymous access to Server.
	Kubeconfig string
	// Failing is the error that Create returns after it has made the containers.
	Failing error
	// Begun, if not nil, is closed by Create after it has made the containers. Create then blocks
	// until the cluster is deleted.
	Begun chan struct{}
	// Images has the IDs of the container runtime's images by name. Unsaved is the error that
	// SaveImage returns.
	Images  map[string]string
	Unsaved error
	// OtherIDs makes the ID of an image on a node differ from its ID in the container runtime.
	OtherIDs bool
	// Architectures has the architectures of images by name. An image without an entry is for
	// Info.Architecture.
	Architectures map[string]string
	// Info has the facts about the container runtime's machine.
	Info kindcluster.RuntimeInfo
	// Dead has the URLs to which the nodes cannot connect.
	Dead []string
	// NoMirrors makes the nodes simulate containerd 1, which reads no mirrors.
	NoMirrors bool
	// Stuck is the error that Delete returns. NetworkStuck is the error that RemoveNetwork returns.
	Stuck, NetworkStuck error
	// Busy is the number of calls of Delete that fail because the runtime is removing the containers.
	Busy int
	// Silent is the error of a container runtime that does not answer. ListNodes and ImageID return it.
	Silent error

	mu       sync.Mutex
	calls    []string
	deleted  chan struct{}
	removing bool
}

// network is the name of the file for kind's network. files is the name of the folder with the
// files and images of the nodes. A cluster cannot have these names.
const (
	network = ".network"
	files   = ".files"
)

// ErrGone is the error of a Create whose containers were deleted.
var ErrGone = errors.New("the container is gone")

// ErrBusy is the error of a Delete while the runtime is removing the containers.
var ErrBusy = errors.New("the removal is already in progress")

// Removing reports whether the last Delete returned ErrBusy.
func (k *Kind) Removing(context.Context, string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.removing, nil
}

// Create makes a cluster.
func (k *Kind) Create(name string, _ ...kind.CreateOption) error {
	deleted := make(chan struct{})
	k.mu.Lock()
	k.deleted = deleted
	k.calls = append(k.calls, "create "+name)
	k.mu.Unlock()
	for _, file := range []string{name, network} {
		if err := os.WriteFile(filepath.Join(k.Folder, file), nil, 0o600); err != nil {
			return fmt.Errorf("make the simulated cluster: %w", err)
		}
	}
	if k.Begun == nil {
		return k.Failing
	}
	close(k.Begun)
	<-deleted
	return ErrGone
}

// Delete removes a cluster, if it exists.
func (k *Kind) Delete(name, _ string) error {
	if k.Stuck != nil {
		return k.Stuck
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, "delete "+name)
	if k.removing = k.Busy > 0; k.removing {
		k.Busy--
		return ErrBusy
	}
	if err := os.RemoveAll(filepath.Join(k.Folder, files, name+"-control-plane")); err != nil {
		return fmt.Errorf("remove the files of the simulated cluster: %w", err)
	}
	err := os.Remove(filepath.Join(k.Folder, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && k.deleted != nil:
		close(k.deleted)
		k.deleted = nil
	}
	return err
}

// List returns the names of the clusters.
func (k *Kind) List() (names []string, err error) {
	entries, err := os.ReadDir(k.Folder)
	if err != nil {
		return nil, fmt.Errorf("list the simulated clusters: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Has reports whether a cluster exists.
func (k *Kind) Has(name string) bool {
	names, err := k.List()
	return err == nil && slices.Contains(names, name)
}

// Remove removes a cluster as another tool would.
func (k *Kind) Remove(name string) error { return os.Remove(filepath.Join(k.Folder, name)) }

// HasNetwork reports whether the network exists.
func (k *Kind) HasNetwork(context.Context) (bool, error) {
	_, err := os.Stat(filepath.Join(k.Folder, network))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RemoveNetwork removes the network.
func (k *Kind) RemoveNetwork(context.Context) error {
	if k.NetworkStuck != nil {
		return k.NetworkStuck
	}
	return os.Remove(filepath.Join(k.Folder, network))
}

// Calls returns the calls of Create and Delete since the last call of Calls.
func (k *Kind) Calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := k.calls
	k.calls = nil
	return calls
}

// ListNodes returns the only node of a cluster, or none if there is no such cluster.
func (k *Kind) ListNodes(name string) ([]nodes.Node, error) {
	if k.Silent != nil {
		return nil, k.Silent
	}
	if !k.Has(name) {
		return nil, nil
	}
	return []nodes.Node{container{k, name + "-control-plane"}}, nil
}

// ImageID returns the ID of one of Images.
func (k *Kind) ImageID(_ context.Context, image string) (string, error) {
	if k.Silent != nil {
		return "", k.Silent
	}
	if id, ok := k.Images[image]; ok {
		return id, nil
	}
	return "", fmt.Errorf("no such image: %s", image)
}

// ImageArchitecture returns one of Architectures, or Info.Architecture.
func (k *Kind) ImageArchitecture(ctx context.Context, image string) (string, error) {
	if architecture, ok := k.Architectures[image]; ok {
		return architecture, nil
	}
	_, err := k.ImageID(ctx, image)
	return k.Info.Architecture, err
}

// RuntimeInfo returns Info.
func (k *Kind) RuntimeInfo(context.Context) (kindcluster.RuntimeInfo, error) { return k.Info, nil }

// SaveImage writes the name and the ID of one of Images, which is all that a simulated archive has.
func (k *Kind) SaveImage(ctx context.Context, image string, to io.Writer) error {
	id, err := k.ImageID(ctx, image)
	if err == nil {
		err = k.Unsaved
	}
	if err == nil {
		_, err = fmt.Fprintf(to, "%s %s", image, id)
	}
	return err
}

// KubeConfig returns the content of the file Kubeconfig, if that is set. If not, it returns a
// kubeconfig for Server. If internal is true, the host in this kubeconfig is the container's name.
func (k *Kind) KubeConfig(name string, internal bool) (string, error) {
	if k.Kubeconfig != "" {
		text, err := os.ReadFile(k.Kubeconfig)
		return string(text), err
	}
	if !k.Has(name) {
		return "", errors.New("could not locate any control plane nodes")
	}
	server := k.Server
	if internal {
		u, err := url.Parse(k.Server)
		if err != nil {
			return "", fmt.Errorf("read the simulated API server's URL: %w", err)
		}
		u.Host = name + "-control-plane:6443"
		server = u.String()
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: kind-%[1]s
clusters: [{name: kind-%[1]s, cluster: {server: %[2]q}}]
contexts: [{name: kind-%[1]s, context: {cluster: kind-%[1]s, user: kind-%[1]s}}]
users: [{name: kind-%[1]s, user: {}}]
`, name, server), nil
}
