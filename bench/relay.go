//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/cri/measure"
)

const (
	relayCalls  = 1000
	relayRounds = 3
)

// Relay has the results of the part relay.
type Relay struct {
	Machine Machine     `json:"machine"`
	Pods    int         `json:"pods"`
	Calls   []RelayCall `json:"calls"`
	// InProcess has the results of the benchmarks of internal/node/criproxy, by name and unit.
	InProcess map[string][]float64 `json:"inProcess"`
}

// RelayCall has the median times of a call, one for each round, in seconds.
type RelayCall struct {
	Method string    `json:"method"`
	OnNode []float64 `json:"onTheNodeSeconds"`
	Proxy  []float64 `json:"throughTheProxySeconds"`
}

// relay calls a container runtime on a Wine node, in turns from the node itself and through `swdt cri
// proxy`.
func (b *bench) relay(ctx context.Context) (Relay, error) {
	result := Relay{Pods: statsPods}
	node, end, err := b.startWineRuntime(ctx, filepath.Join(b.work, "relay"))
	defer end()
	if err != nil {
		return result, err
	}
	runtime, err := node.startProxy(ctx, cri.DefaultPipe)
	if err != nil {
		return result, err
	}
	defer runtime.stop()
	if result.Calls, err = node.calls(ctx, runtime); err != nil {
		return result, err
	}
	result.InProcess, err = b.relayInProcess(ctx)
	return result, err
}

// relayInProcess runs the benchmarks of the relay against a simulated node. Node, relay and SSH on
// loopback are in one process, without Wine: Wine's pipes take longer than all other parts together.
func (b *bench) relayInProcess(ctx context.Context) (map[string][]float64, error) {
	found := map[string][]float64{}
	for pattern, times := range map[string]string{"Bulk": "60x", "Unary": "3000x"} {
		test, err := words("go", "test", "-C", b.root, "-run", "^$", "-bench", pattern, "-benchtime", times,
			"-count", fmt.Sprint(relayRounds), "./internal/node/criproxy").run(ctx)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(test.stdout)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
				continue
			}
			number, err := strconv.ParseFloat(fields[len(fields)-2], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", line, err)
			}
			name := strings.TrimPrefix(fields[0], "Benchmark")
			name = name[:strings.LastIndexByte(name, '-')] + " " + fields[len(fields)-1]
			found[name] = append(found[name], number)
			logf("%s: %g", name, number)
		}
	}
	return found, nil
}

func (r *wineRuntime) calls(ctx context.Context, through *criProxy) ([]RelayCall, error) {
	conn, err := grpc.NewClient("unix://"+through.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	calls := []RelayCall{{Method: cri.MethodVersion}, {Method: measure.MethodStats}}
	for range relayRounds {
		for i := range calls {
			c := &calls[i]
			onNode, err := r.onNode(ctx, 1, "median", c.Method)
			if err != nil {
				return nil, err
			}
			proxied, err := measure.Median(ctx, conn, c.Method, relayCalls)
			if err != nil {
				return nil, err
			}
			c.OnNode, c.Proxy = append(c.OnNode, onNode[0]/1e6), append(c.Proxy, proxied.Seconds())
			logf("%-50s %7.0f µs on the node, %7.0f µs through the proxy", c.Method, onNode[0], proxied.Seconds()*1e6)
		}
	}
	return calls, nil
}

// criProxy is a running `swdt cri proxy`.
type criProxy struct {
	cmd    *exec.Cmd
	socket string
}

// startProxy starts `swdt cri proxy` for one of the node's pipes, and waits until it listens.
func (r *wineRuntime) startProxy(ctx context.Context, pipe string) (*criProxy, error) {
	name := pipe[strings.LastIndexByte(pipe, '\\')+1:]
	health := fmt.Sprintf("        health:\n          criPipe: %s\n", pipe)
	config, err := r.nodeFile(name, r.server.address, provisioner("none", "none.exe", `C:\none.exe`)+health)
	if err != nil {
		return nil, err
	}
	p := &criProxy{socket: filepath.Join(r.b.work, name+".sock")}
	p.cmd = exec.CommandContext(ctx, r.b.swdt, "cri", "proxy", "-c", config, "--listen",
		"unix://"+p.socket, "-o", "json")
	p.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+r.cache)
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	var result any // the proxy listens when it prints its result; the content does not matter
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&result); err != nil {
		p.stop()
		return nil, fmt.Errorf("swdt cri proxy: %w", err)
	}
	return p, nil
}

func (p *criProxy) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait() // the error only reports the interrupt
}

func relayTable(r Relay) string {
	var calls, inProcess [][]string
	for _, c := range r.Calls {
		onNode, proxy := median(c.OnNode), median(c.Proxy)
		calls = append(calls, []string{"`" + c.Method[strings.LastIndexByte(c.Method, '/')+1:] + "`",
			milliseconds(onNode), milliseconds(proxy), milliseconds(proxy - onNode)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.InProcess)) {
		all := r.InProcess[name]
		inProcess = append(inProcess, []string{strings.ReplaceAll(name, "_", " "),
			fmt.Sprintf("%.0f", median(all)), fmt.Sprintf("%.0f", slices.Min(all)),
			fmt.Sprintf("%.0f", slices.Max(all))})
	}
	return machineLine(r.Machine, 0) + fmt.Sprintf(
		" A runtime with %d pods; medians of %d rounds of %d calls each.\n\n", r.Pods, relayRounds, relayCalls) +
		table([]string{"under Wine: median of a call", "on the node ms", "through the proxy ms", "added ms"}, calls) +
		"\n" +
		table([]string{"simulated, in one process", "median", "least", "most"}, inProcess)
}

func milliseconds(s float64) string { return fmt.Sprintf("%.2f", s*1e3) }
