//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// wineRuntime is a Wine node on which a simulated container runtime serves its pipe. Everything
// between swdt and this pipe is real.
type wineRuntime struct {
	*wineNode
	config string
	served *exec.Cmd
}

// startWineRuntime starts a node. The caller must call the returned function, even after an error.
func (b *bench) startWineRuntime(ctx context.Context, folder string) (*wineRuntime, func(), error) {
	r := &wineRuntime{}
	var err error
	r.wineNode, err = b.startWineNode(ctx, folder)
	end := func() {
		if r.served != nil {
			_ = r.served.Process.Signal(os.Interrupt)
			_ = r.served.Wait() // the error only reports the interrupt
		}
		r.end(ctx)
	}
	if err != nil {
		return r, end, err
	}
	program := filepath.Join(folder, "crinode.exe")
	build := words("go", "build", "-C", b.root, "-o", program, "./e2e/crinode")
	build.env = []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}
	if _, err := build.run(ctx); err != nil {
		return r, end, err
	}
	if r.config, err = r.nodeFile("runtime", r.server.address,
		provisioner("none", "none.exe", `C:\none.exe`)); err != nil {
		return r, end, err
	}
	if _, err := r.swdt(ctx, "cp", "-c", r.config, program, `node:C:\crinode.exe`); err != nil {
		return r, end, err
	}
	return r, end, r.serve(ctx)
}

// serve starts the simulated runtime in a separate session, and waits until it serves.
func (r *wineRuntime) serve(ctx context.Context) error {
	r.served = exec.CommandContext(ctx, r.b.swdt, "exec", "-c", r.config, "--", `C:\crinode.exe`, "serve",
		fmt.Sprint(statsPods))
	r.served.Env = append(os.Environ(), "XDG_CACHE_HOME="+r.cache)
	r.served.Stderr = os.Stderr
	stdout, err := r.served.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.served.Start(); err != nil {
		r.served = nil
		return err
	}
	late := time.AfterFunc(time.Minute, func() { _ = r.served.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the runtime under Wine does not serve: %w", err)
	}
	if strings.TrimSpace(line) != "serving" {
		return fmt.Errorf("the runtime under Wine says %q", line)
	}
	return nil
}

// onNode runs crinode.exe on the node and returns the numbers that it prints. count is their expected
// number.
func (r *wineRuntime) onNode(ctx context.Context, count int, args ...string) ([]float64, error) {
	t, err := r.swdt(ctx, append([]string{"exec", "-c", r.config, "--", `C:\crinode.exe`}, args...)...)
	if err != nil {
		return nil, err
	}
	var numbers []float64
	for _, field := range strings.Fields(string(t.stdout)) {
		number, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, fmt.Errorf("crinode %s: %w", strings.Join(args, " "), err)
		}
		numbers = append(numbers, number)
	}
	if len(numbers) != count {
		return nil, fmt.Errorf("crinode %s printed %d numbers, not %d", strings.Join(args, " "), len(numbers), count)
	}
	return numbers, nil
}

// watched returns the node, with the processes whose cost counts. An agent counts only if it starts
// after the call of watched, since earlier agents serve other sessions.
func (r *wineRuntime) watched() watched {
	others := map[int]bool{}
	for _, pid := range r.processes()["agents"] {
		others[pid] = true
	}
	return watched{
		name: "Wine", config: r.config, env: []string{"XDG_CACHE_HOME=" + r.cache},
		far: func() map[string][]int {
			all := r.processes()
			var agents []int
			for _, pid := range all["agents"] {
				if !others[pid] {
					agents = append(agents, pid)
				}
			}
			return map[string][]int{
				"the agent": agents, "wineserver, for all of the node": all["wineserver"],
				"the simulated runtime": all["runtime"],
			}
		},
	}
}

// processes returns the IDs of the relevant processes of the Wine prefix, by role.
func (r *wineRuntime) processes() map[string][]int {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	found := map[string][]int{}
	for _, folder := range folders {
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !strings.Contains("\x00"+string(environment), "\x00WINEPREFIX="+r.prefix+"\x00") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		pid, numberErr := strconv.Atoi(filepath.Base(folder))
		if err != nil || numberErr != nil {
			continue
		}
		program, _, _ := strings.Cut(string(text), "\x00")
		switch {
		case strings.HasSuffix(program, `\swdt-agent.exe`):
			found["agents"] = append(found["agents"], pid)
		case strings.HasSuffix(program, `\crinode.exe`):
			found["runtime"] = append(found["runtime"], pid)
		case strings.HasPrefix(filepath.Base(program), "wineserver"):
			found["wineserver"] = append(found["wineserver"], pid)
		}
	}
	return found
}
