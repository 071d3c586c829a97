package ability

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/probebin"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// The probes, in the order in which they run on a node.
const (
	CPULimit          = "cpu-limit"
	MemoryLimit       = "memory-limit"
	SessionAffinity   = "session-affinity"
	SourceAddress     = "source-address"
	NodePort          = "node-port"
	CSIVolume         = "csi-volume"
	SMBVolume         = "smb-volume"
	NetworkPolicy     = "network-policy"
	KubeletRestart    = "kubelet-restart"
	ContainerdRestart = "containerd-restart"
	Reboot            = "reboot"
)

// Names returns the names of all probes.
func Names() []string {
	return []string{CPULimit, MemoryLimit, SessionAffinity, SourceAddress, NodePort, CSIVolume, SMBVolume, NetworkPolicy,
		KubeletRestart, ContainerdRestart, Reboot}
}

// The results of a probe on a node.
const (
	Proved      = "proved"
	Failed      = "failed"
	NotPossible = "notPossible" // the cluster or the node lacks something
	NotRun      = "notRun"      // the run did not try
)

const (
	windows = "windows"
	linux   = "linux"
)

// Result is the result of a probe on a Windows node.
type Result struct {
	Node    string
	Build   string // the build of the node's Windows, such as 10.0.20348.2849
	Probe   string
	Result  string // proved, failed, notPossible or notRun
	Message string // "" if the probe passed
	Seconds float64
}

// Access runs commands in containers, through the API server.
type Access interface {
	smoke.Kubelets
	probepod.Execs
}

// Options configure a run.
type Options struct {
	Probes []string // at least one
	// Image is the image of the pods on Windows, LinuxImage that of the others. Empty: smoke.DefaultImage.
	Image, LinuxImage string
	// Wait bounds the start of each pod, and what a node may take after a restart. 0: smoke.DefaultWait.
	Wait time.Duration
	// Reporter returns the reporter of a node, or of the run for "". nil: nothing is reported.
	Reporter func(node string) ui.Reporter
	// Records has the records of runs; nil: the user's.
	Records *leftover.Store
	// Access gives access to the containers; nil: the cluster.
	Access Access
	// Program returns swdt-probe for a system and a processor; nil: those inside this swdt.
	Program func(system, processor string) ([]byte, error)
	// Machine connects to a node outside of its cluster. The error is an *UnavailableError if the user has
	// named no way to the node. nil: there is none to any node.
	Machine func(ctx context.Context, n cluster.Node, r ui.Reporter) (Machine, error)
}

func (o Options) completed(c *cluster.Cluster) (Options, error) {
	o.Image = cmp.Or(o.Image, smoke.DefaultImage)
	o.LinuxImage = cmp.Or(o.LinuxImage, smoke.DefaultImage)
	o.Wait = cmp.Or(o.Wait, smoke.DefaultWait)
	if o.Reporter == nil {
		o.Reporter = func(string) ui.Reporter { return ui.Discard{} }
	}
	if o.Access == nil {
		o.Access = c
	}
	if o.Program == nil {
		o.Program = probebin.Embedded
	}
	var err error
	if o.Records == nil {
		o.Records, err = leftover.OpenDefault()
	}
	return o, err
}

// UnavailableError reports that a cluster or a node lacks something that a probe needs.
type UnavailableError struct{ Why string }

func (e *UnavailableError) Error() string { return e.Why }

// notTriedError reports that a probe could not begin, such as since its pod did not start.
type notTriedError struct{ err error }

func (e *notTriedError) Error() string { return e.err.Error() }
func (e *notTriedError) Unwrap() error { return e.err }

// run is one run.
type run struct {
	Options
	c         *cluster.Cluster
	namespace string
	nodes     []cluster.Node // all of the cluster
	// disturbing has the place of the only node that may be restarted, so that the others keep running.
	disturbing chan struct{}
	backends   *backends // nil: no probe needs them
}

// Run runs probes on all Windows nodes, side by side. It removes all that it has made, also if it fails or ctx
// ends. The results have an entry for each probe and node. An error means that nothing could be tried, or that ctx
// ended, or that the removal failed.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (results []Result, err error) {
	if o, err = o.completed(c); err != nil {
		return nil, err
	}
	w := &run{Options: o, c: c, disturbing: make(chan struct{}, 1)}
	r := o.Reporter("")
	defer ui.Done(r)
	if w.nodes, err = c.Nodes(ctx); err != nil {
		return nil, err
	}
	defer interrupt.AllowTime(ctx, leftover.EndLimit)()
	o.Records.Tidy(ctx, c, r)
	record, err := o.Records.BeginOwn(c.Server())
	if err != nil {
		return nil, err
	}
	defer func() {
		r.Step("removing the namespace")
		_, failed := record.End(ctx, c)
		err = errors.Join(err, failed)
	}()
	if err := w.makeNamespace(ctx, record); err != nil {
		return nil, err
	}
	probing, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel() // ends the programs in pods before the namespace is removed
	if w.needsBackends() {
		w.backends = &backends{ready: make(chan struct{})}
		serving.Go(func() { w.makeBackends(probing, w.backends) })
	}
	results = w.test(probing)
	if ctx.Err() != nil {
		return results, context.Cause(ctx)
	}
	return results, nil
}

// needsBackends reports whether a probe sends requests to Services.
func (w *run) needsBackends() bool {
	return slices.ContainsFunc([]string{SessionAffinity, SourceAddress, NodePort}, func(name string) bool {
		return slices.Contains(w.Probes, name)
	})
}

// test runs the probes on all Windows nodes.
func (w *run) test(ctx context.Context) []Result {
	var on []cluster.Node
	for _, n := range w.nodes {
		if systemOf(n) == windows {
			on = append(on, n)
		}
	}
	parts := make([][]Result, len(on))
	var running sync.WaitGroup
	for i, n := range on {
		running.Go(func() {
			r := w.Reporter(n.Name)
			defer ui.Done(r)
			parts[i] = (&nodeTest{run: w, node: n, index: i + 1, r: r}).test(ctx)
		})
	}
	running.Wait()
	results := slices.Concat(parts...)
	if slices.Contains(w.Probes, NetworkPolicy) {
		results = append(results, w.policies(ctx, on)...)
	}
	return results
}

// resultOf returns the words for how a probe ended.
func resultOf(ctx context.Context, err error) (result, message string) {
	var (
		away     *UnavailableError
		notTried *notTriedError
	)
	switch {
	case err == nil:
		return Proved, ""
	case ctx.Err() != nil:
		return NotRun, "interrupted"
	case errors.As(err, &away):
		return NotPossible, shortened(away.Why)
	case errors.As(err, &notTried):
		return NotRun, shortened(err.Error())
	}
	return Failed, shortened(err.Error())
}

// maxMessage bounds a message, in characters.
const maxMessage = 1500

// shortened makes a text printable, which may have parts that a node or a pod has sent, and bounds it.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return ui.Printable(text)
}

func systemOf(n cluster.Node) string { return n.Labels[corev1.LabelOSStable] }

func processorOf(n cluster.Node) string { return cmp.Or(n.Labels[corev1.LabelArchStable], "amd64") }
