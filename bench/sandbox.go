//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// wineNode is a Wine sandbox with OpenSSH in front of it.
type wineNode struct {
	b      *bench
	keys   sshKeys
	server *sshd
	name   string
	state  string
	prefix string
	cache  string // swdt's cache of this run
}

const nodeName = "bench"

// startWineNode starts a node. The caller must call end, even after an error.
func (b *bench) startWineNode(ctx context.Context, folder string) (*wineNode, error) {
	n := &wineNode{b: b, name: nodeName, state: filepath.Join(folder, "state"), cache: filepath.Join(folder, "cache")}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return n, err
	}
	if err := n.shareTemplate(); err != nil {
		return n, err
	}
	up, err := n.swdt(ctx, "sandbox", "up", "--driver", "wine", "--name", n.name, "--state-dir", n.state, "-o", "json")
	if err != nil {
		return n, err
	}
	var info struct{ Prefix string }
	if err := json.Unmarshal(up.stdout, &info); err != nil {
		return n, fmt.Errorf("swdt sandbox up: %w", err)
	}
	n.prefix = info.Prefix
	if n.keys, err = newSSHKeys(ctx, folder); err != nil {
		return n, err
	}
	script := filepath.Join(folder, "command")
	text := fmt.Sprintf("#!/bin/sh\nexec %s sandbox shell --prefix %s\n", b.swdt, n.prefix)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return n, err
	}
	n.server, err = startSSHD(ctx, n.keys, "Subsystem sftp sftp-server.exe", "ForceCommand "+script)
	return n, err
}

// shareTemplate gives the run a separate cache that contains only the user's Wine template, since a
// template is slow to make.
func (n *wineNode) shareTemplate() error {
	own := filepath.Join(n.cache, "swdt")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	users, err := localfile.CacheFolder()
	if err != nil {
		return err
	}
	template := filepath.Join(users, "swdt", "wine")
	if err := os.MkdirAll(template, 0o700); err != nil {
		return err
	}
	return os.Symlink(template, filepath.Join(own, "wine"))
}

// end removes the sandbox. It uses a new deadline, since the deadline of the run may have passed.
func (n *wineNode) end(ctx context.Context) {
	if n.server != nil {
		n.server.stop()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := n.swdt(ctx, "sandbox", "down", "--name", n.name, "--state-dir", n.state); err != nil {
		logf("%v", err)
	}
}

func (n *wineNode) swdt(ctx context.Context, args ...string) (taken, error) {
	c := words(n.b.swdt, args...)
	c.env = []string{"XDG_CACHE_HOME=" + n.cache}
	return c.run(ctx)
}

// drive returns the path on this machine of a file on the node's drive C:.
func (n *wineNode) drive(path string) string {
	return filepath.Join(n.prefix, "drive_c", filepath.FromSlash(path))
}

// nodeFile writes a node file for the node at an address, and returns the file's path.
func (n *wineNode) nodeFile(name, address string, provisioners ...string) (string, error) {
	path := filepath.Join(n.keys.folder, name+".yaml")
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: root
    hostname: %s
    privateKey: %s
    hostKey: %s
  kubernetes:
    provisioners:
%s`, nodeName, address, n.keys.client, n.keys.fingerprint, strings.Join(provisioners, ""))
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func provisioner(name, source, destination string) string {
	return fmt.Sprintf("      - name: %s\n        sourceURL: %s\n        destination: %s\n", name, source, destination)
}

// pushed is the part of `swdt push -o json` about one component.
type pushed struct {
	Action   string
	SHA256   string
	Transfer struct {
		Method    string
		SentBytes int64
	}
	Seconds struct{ Obtain, Transfer, Down, Healthy float64 }
	Parts   []Part `json:"-"` // of the node's push
}

// push runs `swdt push` for one component.
func (n *wineNode) push(ctx context.Context, nodeFile, component string) (taken, pushed, error) {
	t, err := n.swdt(ctx, "push", "-c", nodeFile, "--only", component, "-o", "json")
	if err != nil {
		return t, pushed{}, fmt.Errorf("%w\n%s", err, t.stdout)
	}
	var report struct {
		Nodes []struct {
			Components []pushed
			Parts      []Part
		}
	}
	if err := json.Unmarshal(t.stdout, &report); err != nil {
		return t, pushed{}, fmt.Errorf("swdt push: %w", err)
	}
	if len(report.Nodes) != 1 || len(report.Nodes[0].Components) != 1 {
		return t, pushed{}, fmt.Errorf("swdt push reports not exactly one component: %s", t.stdout)
	}
	p := report.Nodes[0].Components[0]
	p.Parts = report.Nodes[0].Parts
	return t, p, nil
}
