package readiness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// The probes of kubelets. The other probes are legs of package smoke, and those of package ability.
const (
	probeNodeLogs       = "node-logs"
	probeKubeletMetrics = "kubelet-metrics"
)

const (
	// answerLimit bounds an answer of a kubelet in time, and maxAnswer in bytes.
	answerLimit = 30 * time.Second
	maxAnswer   = 8 << 20
	// queriedLines is the number of lines of a log that a probe asks for.
	queriedLines = "20"
)

// Kubelets sends requests to kubelets through the API server.
type Kubelets interface {
	// Logs returns lines of a service's log, by a node log query.
	Logs(ctx context.Context, node, service string) (io.ReadCloser, error)
	// Metrics returns the metrics at a path of the kubelet, such as metrics/resource.
	Metrics(ctx context.Context, node, path string) (io.ReadCloser, error)
}

// kubelets are the kubelets of a cluster.
type kubelets struct{ c *cluster.Cluster }

func (k kubelets) Logs(ctx context.Context, node, service string) (io.ReadCloser, error) {
	return k.c.NodeLogs(ctx, node, "", url.Values{"query": {service}, "tailLines": {queriedLines}}, "")
}

func (k kubelets) Metrics(ctx context.Context, node, path string) (io.ReadCloser, error) {
	body, err := k.c.Clientset().CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").
		Suffix(path).Stream(ctx)
	return body, k.c.Failure("read "+path+" of node "+node,
		cluster.Permission{Verb: "get", Resource: "nodes/proxy", Name: node}, err)
}

// unavailable is an error that means that the node is not configured for a probe, so that the case can
// neither be proved nor fail.
type unavailable struct{ why string }

func (e *unavailable) Error() string { return e.why }

// legsOf returns the legs of a smoke test that prove the probe; none for other probes.
func legsOf(probe string) []string {
	switch {
	case probe == probeNodeLogs, probe == probeKubeletMetrics, slices.Contains(ability.Names(), probe):
		return nil
	case probe == smoke.Started:
		return []string{smoke.Scheduled, smoke.Started}
	}
	return []string{probe}
}

// Probes returns the names of all probes.
func Probes() []string {
	return append([]string{smoke.Started, smoke.LogsAndExec, smoke.Resolves, smoke.ReachesLinux, smoke.ReachesService,
		smoke.ReachedFromLinux, smoke.ReachesAPI, probeNodeLogs, probeKubeletMetrics}, ability.Names()...)
}

// probe runs the probes of the cases that are not decided yet.
func (w *run) probe(ctx context.Context) error {
	var pods, abilities []int
	for i, c := range w.Cases {
		switch {
		case c.Probe == "" || w.report.Cases[i].Result == NotPossible || ctx.Err() != nil:
		case len(legsOf(c.Probe)) > 0:
			pods = append(pods, i)
		case slices.Contains(ability.Names(), c.Probe):
			abilities = append(abilities, i)
		default:
			w.Reporter.Step("%s", c.ID)
			w.askKubelets(ctx, &w.report.Cases[i], c.Probe)
			w.say(w.report.Cases[i])
		}
	}
	err := w.smoke(ctx, pods)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, w.abilities(ctx, abilities))
}

// smoke runs the probes of these cases that are legs of a smoke test.
func (w *run) smoke(ctx context.Context, cases []int) error {
	if len(cases) == 0 {
		return nil
	}
	w.Reporter.Step("run a pod on each Windows node")
	report, err := w.Smoke(ctx)
	var failed *smoke.FailedError
	if errors.As(err, &failed) {
		err = nil // the report has the failures
	}
	for _, i := range cases {
		w.report.Cases[i].takeLegs(report, legsOf(w.Cases[i].Probe), err)
		w.say(w.report.Cases[i])
	}
	return err
}

// SmokeTest returns a function for Options.Smoke, which runs a smoke test of the cluster. If swdt is killed
// meanwhile, the next run removes its namespace.
func SmokeTest(c *cluster.Cluster, o smoke.Options, records *leftover.Store) func(context.Context) (smoke.Report, error) {
	return func(ctx context.Context) (report smoke.Report, err error) {
		record, err := records.BeginOwn(c.Server())
		if err != nil {
			return report, err
		}
		defer interrupt.AllowTime(ctx, leftover.EndLimit)()
		defer func() {
			_, failed := record.End(ctx, c) // finds nothing after a run that removed its namespace
			err = errors.Join(err, failed)
		}()
		o.Labels = record.Labels()
		return smoke.Run(ctx, c, o)
	}
}

// abilities runs the probes of these cases that package ability has.
func (w *run) abilities(ctx context.Context, cases []int) error {
	if len(cases) == 0 {
		return nil
	}
	var names []string
	for _, i := range cases {
		names = append(names, w.Cases[i].Probe)
	}
	w.Reporter.Step("run %d probes on each Windows node", len(names))
	results, err := w.Ability(ctx, names)
	for _, i := range cases {
		w.report.Cases[i].takeAbilities(results, w.Cases[i].Probe, err)
		w.say(w.report.Cases[i])
	}
	return err
}

// takeAbilities derives the result of a case from those of its probe on all nodes. err is the error of the
// whole run of probes.
func (c *CaseResult) takeAbilities(results []ability.Result, probe string, err error) {
	for _, r := range results {
		if r.Probe == probe { // both packages use the same words for results
			c.Nodes = append(c.Nodes, NodeResult{Name: r.Node, Build: r.Build, Result: r.Result, Message: r.Message,
				Seconds: r.Seconds})
		}
	}
	c.takeNodes()
	if len(c.Nodes) == 0 {
		c.Result, c.Message = NotRun, "the probe was not run"
		if err != nil {
			c.Message = err.Error()
		}
	}
}

// takeLegs derives the result of a case from legs of a smoke test on all nodes. err is the error of
// the smoke test itself.
func (c *CaseResult) takeLegs(report smoke.Report, names []string, err error) {
	for _, n := range report.Nodes {
		node := NodeResult{Name: n.Name, Build: n.Build, Result: NotRun, Message: "the pod's test did not come so far"}
		for _, leg := range n.Legs {
			if !slices.Contains(names, leg.Name) {
				continue
			}
			node.Seconds += leg.Seconds
			node.Result, node.Message = Proved, ""
			if leg.Result != smoke.Passed {
				node.Result, node.Message = leg.Result, leg.Message // both packages use the same two words
				break
			}
		}
		c.Nodes = append(c.Nodes, node)
	}
	c.takeNodes()
	if len(c.Nodes) == 0 {
		c.Result, c.Message = NotRun, "no pod was run"
		if err != nil {
			c.Message = err.Error()
		}
	}
}

// takeNodes derives the result of a case from those of its nodes: the worst one.
func (c *CaseResult) takeNodes() {
	order := []string{Proved, NotPossible, NotRun, Failed}
	c.Result, c.Message = Proved, ""
	for _, n := range c.Nodes {
		c.Seconds = max(c.Seconds, n.Seconds) // nodes are tested at the same time
		if slices.Index(order, n.Result) > slices.Index(order, c.Result) {
			c.Result, c.Message = n.Result, n.Name+": "+n.Message
		}
	}
}

// askKubelets runs a probe of kubelets on each Windows node.
func (w *run) askKubelets(ctx context.Context, result *CaseResult, probe string) {
	for _, n := range w.facts.Windows {
		begin := time.Now()
		node := NodeResult{Name: n.Name, Build: n.KernelVersion, Result: Proved}
		var away *unavailable
		err := w.askKubelet(ctx, n.Name, probe)
		switch {
		case errors.As(err, &away):
			node.Result, node.Message = NotPossible, away.why
		case ctx.Err() != nil:
			node.Result, node.Message = NotRun, "interrupted"
		case err != nil:
			node.Result, node.Message = Failed, err.Error()
		}
		node.Seconds = time.Since(begin).Seconds()
		result.Nodes = append(result.Nodes, node)
	}
	result.takeNodes()
}

func (w *run) askKubelet(ctx context.Context, node, probe string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if probe == probeNodeLogs {
		return queryLog(ctx, w.Kubelets, node)
	}
	return readMetrics(ctx, w.Kubelets, node)
}

// queryLog asks for the end of kubelet's own log.
func queryLog(ctx context.Context, k Kubelets, node string) error {
	body, err := k.Logs(ctx, node, "kubelet")
	var disabled *cluster.LogsDisabledError
	if errors.As(err, &disabled) {
		return &unavailable{disabled.Error()}
	}
	if err != nil {
		return fmt.Errorf("read the log of kubelet on node %s: %w", node, err)
	}
	text, err := readAll(body)
	if err != nil {
		return fmt.Errorf("read the log of kubelet on node %s: %w", node, err)
	}
	// A kubelet without node log queries answers with a listing of its log folder.
	if start := bytes.ToLower(text[:min(len(text), 20)]); bytes.HasPrefix(start, []byte("<!doctype html>")) ||
		bytes.HasPrefix(start, []byte("<pre>")) {
		return &unavailable{"kubelet on node " + node + " does not serve node log queries; set enableSystemLogQuery: true " +
			"in its configuration"}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("kubelet on node %s returned an empty log for the query kubelet", node)
	}
	return nil
}

// readMetrics checks that kubelet reports its own metrics, and the CPU time and memory of the node. If
// containers run on the node, kubelet must also report their CPU time and memory.
func readMetrics(ctx context.Context, k Kubelets, node string) error {
	const own, resources = "metrics", "metrics/resource"
	has, err := readPage(ctx, k, node, own)
	if err != nil {
		return err
	}
	if !has["kubelet_running_pods"] {
		return fmt.Errorf("%s of kubelet on node %s lacks kubelet_running_pods", own, node)
	}
	want := []string{"node_cpu_usage_seconds_total", "node_memory_working_set_bytes"}
	if has[runningContainers] {
		want = append(want, "container_cpu_usage_seconds_total", "container_memory_working_set_bytes")
	}
	if has, err = readPage(ctx, k, node, resources); err != nil {
		return err
	}
	for _, name := range want {
		if !has[name] {
			return fmt.Errorf("%s of kubelet on node %s lacks %s", resources, node, name)
		}
	}
	return nil
}

// runningContainers is the metric with the number of running containers.
const runningContainers = `kubelet_running_containers{container_state="running"}`

// readPage returns the names of the metrics on a page of the kubelet. If containers run, it also
// returns runningContainers.
func readPage(ctx context.Context, k Kubelets, node, path string) (map[string]bool, error) {
	body, err := k.Metrics(ctx, node, path)
	if err != nil {
		return nil, err
	}
	text, err := readAll(body)
	if err != nil {
		return nil, fmt.Errorf("read %s of node %s: %w", path, node, err)
	}
	return metricNames(text), nil
}

// metricNames returns the names of the metrics in a text of Prometheus' format. If containers run, it
// also returns runningContainers.
func metricNames(text []byte) map[string]bool {
	names := map[string]bool{}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		line := scanner.Text()
		if strings.HasPrefix(line, runningContainers) && strings.TrimSpace(line[len(runningContainers):]) != "0" {
			names[runningContainers] = true
		}
		if end := strings.IndexAny(line, "{ "); end > 0 && line[0] != '#' {
			names[line[:end]] = true
		}
	}
	return names
}

// readAll reads an answer of a kubelet, at most maxAnswer bytes, and closes it.
func readAll(body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxAnswer))
}
