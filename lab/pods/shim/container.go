//go:build windows

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// container is a job object with the processes that containerd has requested.
type container struct {
	id, bundle string
	files      string  // the folder on this machine that is the container's C:; empty: there is none
	mounts     []mount // of emptyDir volumes
	view       *view   // nil: it is no HostProcess container
	created    time.Time
	job        *job

	mu        sync.Mutex
	processes map[string]*process // by exec ID; the ID of the container's own process is ""
}

// newContainer reads the bundle that containerd wrote.
func newContainer(r *task.CreateTaskRequest) (*container, error) {
	text, err := os.ReadFile(filepath.Join(r.Bundle, "config.json"))
	if err != nil {
		return nil, fmt.Errorf("read the container's specification: %w", err)
	}
	var spec struct {
		Process processSpec `json:"process"`
		Mounts  []mount     `json:"mounts"`
		Windows struct {
			Resources resources `json:"resources"`
		} `json:"windows"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("read the container's specification: %w", err)
	}
	if r.Terminal {
		return nil, unimplemented("terminals")
	}
	files, err := filesOf(r.Rootfs)
	if err != nil {
		return nil, err
	}
	var root *view
	if spec.Annotations["microsoft.com/hostprocess-container"] == "true" {
		if root, err = newView(r.ID, files, spec.Mounts); err != nil {
			return nil, err
		}
	}
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	c := &container{id: r.ID, bundle: r.Bundle, files: files, mounts: emptyDirs(spec.Mounts), view: root,
		created: time.Now(), job: job,
		processes: map[string]*process{}}
	c.processes[""] = newProcess("", spec.Process, streams{r.Stdin, r.Stdout, r.Stderr, false})
	if l := spec.Windows.Resources.limits(runtime.NumCPU()); l != (limits{}) && !planted(unlimited) {
		go c.job.enforce(l, c.processes[""].ended)
	}
	return c, nil
}

// filesOf returns the folder with the files of the image's only layer, or "" if there is no layer.
func filesOf(mounts []*types.Mount) (string, error) {
	for _, mount := range mounts {
		for _, option := range mount.Options {
			value, found := strings.CutPrefix(option, "parentLayerPaths=")
			if !found {
				continue
			}
			var parents []string
			if err := json.Unmarshal([]byte(value), &parents); err != nil {
				return "", fmt.Errorf("read the layers of %s: %w", mount.Source, err)
			}
			if len(parents) > 0 {
				return filepath.Join(parents[0], "Files"), nil
			}
		}
	}
	return "", nil
}

// path translates a path in the container to a path on this machine: to the file in the image
// or, if the image has no such file, to the same path. A name without a folder is that of a program
// of Windows.
func (c *container) path(name string) string {
	if outside := mounted(c.mounts, name); outside != name {
		return outside
	}
	if c.files == "" {
		return name
	}
	inside := filepath.Join(c.files, `Windows\System32`, name)
	if filepath.IsAbs(name) {
		inside = filepath.Join(c.files, name[len(filepath.VolumeName(name)):])
	}
	if _, err := os.Stat(inside); err != nil {
		return name
	}
	return inside
}

func (c *container) process(execID string) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.processes[execID]
	if found == nil {
		return nil, status.Errorf(codes.NotFound, "there is no process %q in container %s", execID, c.id)
	}
	return found, nil
}

// add records a process that containerd requests. Wine has no terminals for such a process; one with
// a terminal gets pipes, and its errors are part of its output.
func (c *container) add(r *task.ExecProcessRequest) error {
	var spec processSpec
	if err := json.Unmarshal(r.Spec.GetValue(), &spec); err != nil {
		return status.Errorf(codes.InvalidArgument, "read the specification of a process: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.processes[r.ExecID] != nil {
		return status.Errorf(codes.AlreadyExists, "there is a process %s in container %s", r.ExecID, c.id)
	}
	c.processes[r.ExecID] = newProcess(r.ExecID, spec, streams{r.Stdin, r.Stdout, r.Stderr, r.Terminal})
	return nil
}

func (c *container) remove(execID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.processes, execID)
}

// kill ends all processes of the container.
func (c *container) kill(exitCode uint32) { c.job.terminate(exitCode) }

// close frees what the container holds. A view that cannot be removed stays, since nothing else needs its place.
func (c *container) close() {
	c.job.close()
	if c.view != nil {
		if err := c.view.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "containerd-shim-lab-v1:", err)
		}
	}
}
