package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// startTimeout bounds the whole start, which takes some 4 s on an idle machine with two cores.
const startTimeout = 3 * time.Minute

// ErrNotHere is the error if this machine cannot run a control plane, or does not have the programs
// of a control plane.
var ErrNotHere = errors.New("no control plane can be started here")

// Options are the settings of a control plane.
type Options struct {
	// Binaries is the folder of etcd, kube-apiserver, kube-controller-manager,
	// kube-scheduler and kubeadm: see DefaultBinaries.
	Binaries string
	// State is a folder that does not exist yet or is empty: certificates,
	// kubeconfigs, etcd's data and the logs go there. The caller removes it after
	// Stop.
	State string
	// Name is the cluster's name, "swdt" if empty.
	Name string
	// Audit are users whose requests the API server records, one JSON object a line, in AuditLog. Without
	// users it records none.
	Audit []string
	// PodSecurity is the Pod Security Standard that the API server enforces, and warns of, in namespaces
	// without labels of their own. Default: privileged, as in Kubernetes.
	PodSecurity string
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	layout    layout
	options   Options
	ports     *ports
	running   context.Context // all processes end with this context
	stop      context.CancelFunc
	processes []*process
	died      chan struct{} // closed when a process has ended by itself
	dieOnce   sync.Once
	deathErr  error // set before died is closed
}

// DefaultBinaries returns the folder into which lab/build.sh puts the programs: the folder linux of
// the lab's cache. The variable SWDT_LAB sets another cache.
func DefaultBinaries() (string, error) {
	if lab := os.Getenv("SWDT_LAB"); lab != "" {
		return filepath.Join(lab, "linux"), nil
	}
	cache, err := localfile.CacheFolder()
	if err != nil {
		return "", fmt.Errorf("find the lab's programs: %w: set SWDT_LAB to their folder", err)
	}
	return filepath.Join(cache, "swdt", "lab", "linux"), nil
}

// Check returns an error, which is ErrNotHere, if this machine cannot run a control plane. It
// starts nothing.
func Check(binaries string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: the lab's control plane is for Linux, and this is %s", ErrNotHere, runtime.GOOS)
	}
	var missing []string
	for _, name := range programs() {
		if _, err := os.Stat(filepath.Join(binaries, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s has no %s: run `make lab` in a clone of swdt (a quarter of an hour the first time)",
			ErrNotHere, binaries, strings.Join(missing, ", "))
	}
	return nil
}

// Start starts a control plane and returns when nodes can join it: the API server is ready, its
// controllers work, and cluster-info and the configuration that `kubeadm join` reads exist. ctx
// limits only the start. After that the control plane runs until Stop, or until this process ends
// if the system supports that.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if err := Check(o.Binaries); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if o.Name == "" {
		o.Name = "swdt"
	}
	layout, err := makeLayout(o)
	if err != nil {
		return nil, err
	}
	ports, err := reservePorts()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{layout: layout, options: o, ports: ports, died: make(chan struct{})}
	c.running, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.start(ctx, o.Name); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane in %s: %w", o.State, err),
			c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, name string) error {
	if err := c.layout.writeKubeadmConfigs(ctx, name, c.ports); err != nil {
		return err
	}
	if err := c.layout.makeCredentials(ctx); err != nil {
		return err
	}
	if err := c.layout.writeAuditPolicy(c.options.Audit); err != nil {
		return err
	}
	if err := c.layout.writeAdmission(c.options.PodSecurity); err != nil {
		return err
	}
	if err := c.run(c.layout.etcd(c.ports), c.layout.apiServer(c.ports, c.options)); err != nil {
		return err
	}
	client, err := c.awaitAPIServer(ctx)
	if err != nil {
		return err
	}
	if err := letAdministratorsIn(ctx, client); err != nil {
		return err
	}
	// Start these programs only now: if they find no API server, they look again only after two
	// seconds.
	if err := c.run(c.layout.controllerManager(name, c.ports), c.layout.scheduler(c.ports)); err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return c.upload(ctx, client) })
	tasks.Go(func() error { return c.awaitControllers(ctx, client) })
	return tasks.Wait()
}

func (c *ControlPlane) run(components ...component) error {
	for _, component := range components {
		name := component.name
		p, err := startProcess(c.running, name, c.layout.binary(name), component.args, c.layout.log(name))
		if err != nil {
			return err
		}
		c.processes = append(c.processes, p)
		context.AfterFunc(p.ended, func() {
			if c.running.Err() == nil && !p.killed.Load() {
				c.fail(p.exitError())
			}
		})
	}
	return nil
}

func (c *ControlPlane) fail(err error) {
	c.dieOnce.Do(func() {
		c.deathErr = err
		close(c.died)
	})
}

// Server returns the URL of the API server.
func (c *ControlPlane) Server() string { return c.layout.server(c.ports) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return c.layout.kubeconfig("admin") }

// Logs returns the folder with a log file of each process.
func (c *ControlPlane) Logs() string { return c.layout.logs() }

// AuditLog returns the file with the requests of the users in Options.Audit.
func (c *ControlPlane) AuditLog() string { return c.layout.auditLog() }

// RestartAPIServer kills the API server, as the kernel does when memory is short, starts it again with the
// same data, and returns when it is ready. The caller must not call Stop meanwhile.
func (c *ControlPlane) RestartAPIServer(ctx context.Context) error {
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == apiServer })
	if i < 0 {
		return errors.New("restart the API server: it does not run")
	}
	if err := c.processes[i].kill(ctx); err != nil {
		return fmt.Errorf("restart the API server: %w", err)
	}
	c.processes = slices.Delete(c.processes, i, i+1)
	if err := c.run(c.layout.apiServer(c.ports, c.options)); err != nil {
		return fmt.Errorf("restart the API server: %w", err)
	}
	_, err := c.awaitAPIServer(ctx)
	return err
}

// Died returns a channel that is closed when a process of the control plane has ended by itself.
// Err then names the process and the end of its log.
func (c *ControlPlane) Died() <-chan struct{} { return c.died }

// Err returns why a process has ended by itself; nil until Died is closed.
func (c *ControlPlane) Err() error {
	select {
	case <-c.died:
		return c.deathErr
	default:
		return nil
	}
}

// Stop ends the control plane at once, and returns when none of its processes is left. None of its
// data is kept, so Stop gives no process time to finish. Calling it twice is safe.
func (c *ControlPlane) Stop(ctx context.Context) error {
	c.stop()
	defer c.ports.Release()
	for _, p := range c.processes {
		select {
		case <-p.ended.Done():
		case <-ctx.Done():
			return fmt.Errorf("stop the control plane: %s (process %d) has not ended: %w", p.name, p.pid(), ctx.Err())
		}
	}
	return nil
}
