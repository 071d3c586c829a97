package control_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/swdt-dev/swdt/internal/rollout/control"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// controllerWith makes the test program run the controller with this kubeconfig, until its stdin ends;
// leaseOf is the duration of its election's lease.
const controllerWith, leaseOf = "SWDT_TEST_CONTROLLER_WITH", "SWDT_TEST_LEASE_OF"

func TestMain(m *testing.M) {
	kubeconfig := os.Getenv(controllerWith)
	if kubeconfig == "" {
		os.Exit(m.Run())
	}
	if err := beController(kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beController(kubeconfig string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(os.Getenv(leaseOf))
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	return control.Run(ctx, config, control.Options{Namespace: manifests.Namespace, Lease: lease, Metrics: "0", Probes: "0"})
}

// process is the controller in a process of its own, which is started again whenever it ends, as a kubelet
// does it.
type process struct {
	lab        *lab
	kubeconfig string
	lease      time.Duration
	stop       func()

	mutex   sync.Mutex
	command *exec.Cmd // nil: none runs
	stdin   io.Closer
	kills   int
}

// controllerProcess starts the controller, with the rights of its account.
func (l *lab) controllerProcess(lease time.Duration) *process {
	l.t.Helper()
	p := &process{lab: l, kubeconfig: filepath.Join(l.t.TempDir(), "kubeconfig"), lease: lease}
	if err := writeKubeconfig(l.account("swdt-controller", ""), p.kubeconfig); err != nil {
		l.t.Fatal(err)
	}
	p.stop = l.background(func(ctx context.Context) {
		context.AfterFunc(ctx, p.finish)
		for ctx.Err() == nil {
			if err := p.run(ctx); err != nil {
				l.t.Errorf("the controller's process: %v", err)
				return
			}
		}
	})
	return p
}

func (p *process) run(ctx context.Context) error {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), controllerWith+"="+p.kubeconfig, leaseOf+"="+p.lease.String())
	command.Stderr = p.lab.t.Output()
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	p.mutex.Lock()
	if ctx.Err() != nil {
		p.mutex.Unlock()
		return nil
	}
	if err := command.Start(); err != nil {
		p.mutex.Unlock()
		return err
	}
	p.command, p.stdin = command, stdin
	p.mutex.Unlock()
	_ = command.Wait() // it may have been killed, or have lost its lease
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.command = nil
	return nil
}

// finish makes the process release its lease and end.
func (p *process) finish() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command != nil {
		p.stdin.Close()
	}
}

// kill kills the process, and reports whether one ran.
func (p *process) kill() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil || p.command.Process.Kill() != nil {
		return false
	}
	p.command = nil // it has not been waited for, but must not be killed twice
	p.kills++
	return true
}

// usage is the processor time and the memory of the process since its start.
type usage struct {
	processor time.Duration
	peak      int64 // of resident memory, in bytes
}

// usage reads it from Linux. The peak that the kernel hands to a parent would be that of the test program.
func (p *process) usage() usage {
	p.lab.t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		p.lab.t.Fatal("the controller does not run")
	}
	folder := fmt.Sprintf("/proc/%d/", p.command.Process.Pid)
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		p.lab.t.Fatal(err)
	}
	status, err := os.ReadFile(folder + "status")
	if err != nil {
		p.lab.t.Fatal(err)
	}
	var u usage
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of a program may have spaces
	for _, ticks := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(ticks)
		if err != nil {
			p.lab.t.Fatal(err)
		}
		u.processor += time.Duration(n) * time.Second / 100
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &u.peak); err == nil {
			u.peak <<= 10
			return u
		}
	}
	p.lab.t.Fatal("Linux names no peak of memory")
	return u
}

func writeKubeconfig(access *rest.Config, file string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthority: access.CAFile,
		CertificateAuthorityData: access.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: access.BearerToken}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return clientcmd.WriteToFile(*config, file)
}
