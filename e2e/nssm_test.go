//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	nssmExe      = `C:\Program Files\nssm\nssm.exe` // with a space, so nssm registers itself in quotes
	logRunnerExe = `C:\k\kube-log-runner.exe`
	nssmKey      = `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`
)

// TestRealNSSM holds swdt against a kubelet that the real nssm runs: what nssm writes into the registry, what
// it starts, and what it does with a program that ends. The simulated nssm (internal/platform/simulated)
// does what was seen here.
func TestRealNSSM(t *testing.T) {
	t.Parallel()
	n := nssmNode(t)
	for _, step := range []struct {
		name string
		run  func(*nssmOfNode, *testing.T)
	}{
		{"settings", (*nssmOfNode).testSettings},
		{"push", (*nssmOfNode).testPush},
		{"logs", (*nssmOfNode).testLogs},
		{"doctor", (*nssmOfNode).testDoctor},
		{"programs that end", (*nssmOfNode).testProgramsThatEnd},
		{"paused", (*nssmOfNode).testPaused},
		{"names of the program", (*nssmOfNode).testNames},
		{"wrappers under nssm", (*nssmOfNode).testWrappers},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(n, t) }) {
			return // the next step needs what this one leaves
		}
	}
}

// nssmOfNode is a Wine node whose kubelet v1.28.0 the real nssm runs.
type nssmOfNode struct {
	credentials, config string // config is a node file of v1.29.0
	health              string // the URL of the kubelet's health check
	arguments           string
}

func nssmNode(t *testing.T) *nssmOfNode {
	t.Helper()
	if _, err := os.Stat(filepath.Join(environment(t, "SWDT_LAB"), "nssm.exe")); err != nil {
		t.Skip("needs nssm.exe of `lab/build.sh nssm`")
	}
	port := freePort(t)
	n := &nssmOfNode{credentials: credentialsOf(t, wineSandboxNamed(t, "nssm")),
		health: "http://127.0.0.1:" + port + "/healthz", arguments: "--windows-service=false --healthz-port=" + port}
	n.config = n.nodeFile(t, "v1.29.0", "", kubeletExe)
	n.copy(t, "nssm.exe", nssmExe)
	n.copy(t, "kubelet-v1.28.0.exe", kubeletExe)
	n.copy(t, "node/kube-log-runner-1.36.3.exe", logRunnerExe)
	n.put(t, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupsPerQOS: true\n"+
		"healthzPort: "+port+"\n", `C:\k\config.yaml`)
	n.put(t, "", `C:\k\logs\.keep`)
	n.exec(t, append([]string{nssmExe, "install", "kubelet", `%K%\kubelet.exe`},
		strings.Fields(n.arguments+` --config=%K%\config.yaml`)...)...)
	n.set(t, "AppEnvironmentExtra", `K=C:\k`, `L=%K%\logs`)
	n.set(t, "AppDirectory", `%K%`)
	n.set(t, "AppStdout", `%L%\out.log`)
	n.set(t, "AppStderr", `%L%\out.log`)
	n.set(t, "AppRotateFiles", "1")
	n.exec(t, "net", "start", "kubelet")
	return n
}

func (n *nssmOfNode) nodeFile(t *testing.T, version, fault, destination string) string {
	t.Helper()
	return nodeFile(t, n.credentials, provisioner("kubelet", version, lab(t, "kubelet-"+version+fault+".exe"), destination,
		"        health: {httpGet: '"+n.health+"', timeout: 20s}\n"))
}

func (n *nssmOfNode) exec(t *testing.T, args ...string) string {
	t.Helper()
	return ok(t, append([]string{"exec", "-c", n.config, "--accept-new-host-key", "--"}, args...)...).stdout
}

func (n *nssmOfNode) set(t *testing.T, args ...string) {
	t.Helper()
	n.exec(t, append([]string{nssmExe, "set", "kubelet"}, args...)...)
}

func (n *nssmOfNode) copy(t *testing.T, program, destination string) {
	t.Helper()
	ok(t, "cp", "-c", n.config, "--accept-new-host-key", lab(t, program), "node:"+destination)
}

func (n *nssmOfNode) put(t *testing.T, content, destination string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "cp", "-c", n.config, file, "node:"+destination)
}

// kubeletStatus has the promised fields of `swdt status -o json`.
type kubeletStatus struct {
	SHA256, Version, Runs, Drift, Message string
	Service                               struct {
		State string
		PID   uint32
	}
	PID uint32
}

func (n *nssmOfNode) status(t *testing.T) kubeletStatus {
	t.Helper()
	return decoded[struct {
		Nodes []struct{ Components []kubeletStatus }
	}](t, ok(t, "status", "-c", n.config, "-o", "json")).Nodes[0].Components[0]
}

// runs waits until the service runs the version, in a process of the program below the service's own.
func (n *nssmOfNode) runs(t *testing.T, version string) kubeletStatus {
	t.Helper()
	var s kubeletStatus
	eventually(t, "kubelet "+version, func() error {
		s = n.status(t)
		if s.Version != version || s.Runs != kubeletExe || s.Service.State != "running" || s.PID == 0 || s.PID == s.Service.PID {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	return s
}

// processes returns the name of each process of the service, by its id.
func (n *nssmOfNode) processes(t *testing.T) map[uint32]string {
	t.Helper()
	names := map[uint32]string{}
	for _, s := range decoded[struct {
		Nodes []struct {
			Services []struct {
				Name      string
				Processes []struct {
					PID  uint32
					Name string
				}
			}
		}
	}](t, ok(t, "ps", "-c", n.config, "-o", "json")).Nodes[0].Services {
		for _, p := range s.Processes {
			names[p.PID] = p.Name
		}
	}
	return names
}

func (n *nssmOfNode) testSettings(t *testing.T) {
	registered := n.exec(t, "reg", "query", `HKLM\SYSTEM\CurrentControlSet\Services\kubelet`, "/s")
	for _, want := range []string{
		`ImagePath REG_SZ "` + nssmExe + `"`, `Application REG_EXPAND_SZ %K%\kubelet.exe`, `AppDirectory REG_EXPAND_SZ %K%`,
		`AppParameters REG_EXPAND_SZ ` + n.arguments + ` --config=%K%\config.yaml`, `AppEnvironmentExtra REG_MULTI_SZ K=C:\k\0L=%K%\logs`,
		`AppStdout REG_EXPAND_SZ %L%\out.log`, `AppRotateFiles REG_DWORD 0x1`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(registered), " "), want) {
			t.Errorf("want %s in:\n%s", want, registered)
		}
	}
	s := n.runs(t, "v1.28.0")
	programs := n.processes(t)
	if programs[s.PID] != "kubelet.exe" || programs[s.Service.PID] != "nssm.exe" {
		t.Errorf("status has process %d of service process %d, and the processes are %v", s.PID, s.Service.PID, programs)
	}
	if s.Drift != "binary" {
		t.Errorf("the drift is %s: %s", s.Drift, s.Message)
	}
}

func (n *nssmOfNode) testPush(t *testing.T) {
	before := n.runs(t, "v1.28.0")
	const wrong = `C:\other\kubelet.exe`
	if r := swdt(t, "push", "-c", n.nodeFile(t, "v1.29.0", "", wrong)); r.code != 2 || !strings.Contains(r.stdout, kubeletExe) {
		t.Errorf("a wrong destination: %s", r)
	}
	if r := swdt(t, "exec", "-c", n.config, "--", "cmd", "/c", "dir", "/b", `C:\other`); r.code == 0 {
		t.Errorf("the wrong destination's folder was made: %s", r.stdout)
	}
	if after := n.runs(t, "v1.28.0"); after.PID != before.PID || after.SHA256 != before.SHA256 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	n.push(t, n.config, "v1.29.0")
	if after := n.runs(t, "v1.29.0"); after.PID == before.PID || after.Drift != "none" {
		t.Errorf("before %+v, after %+v", before, after)
	}
	again := decoded[report](t, ok(t, "push", "-c", n.config, "-o", "json"))
	if again.Nodes[0].Result != "unchanged" {
		t.Errorf("again: %+v", again)
	}
}

func (n *nssmOfNode) push(t *testing.T, config, version string) {
	t.Helper()
	c := decoded[report](t, ok(t, "push", "-c", config, "-o", "json")).Nodes[0].Components[0]
	if c.Action != "replaced" || c.Version.After != version || c.Service.State != "running" {
		t.Errorf("%+v", c)
	}
}

// testLogs expects the file into which nssm writes now, and that of the kubelet before, which nssm renamed.
func (n *nssmOfNode) testLogs(t *testing.T) {
	list := ok(t, "logs", "list", "-c", n.config).stdout
	if strings.Contains(list, "not yet") || !strings.Contains(list, `C:\k\logs\out.log`) ||
		!strings.Contains(list, `C:\k\logs\out-20`) {
		t.Errorf("the logs are\n%s", list)
	}
	if all := ok(t, "logs", "kubelet", "-c", n.config, "--since", "1h").stdout; !strings.Contains(all, `kubeletVersion="v1.28.0"`) ||
		!strings.Contains(all, `kubeletVersion="v1.29.0"`) {
		t.Errorf("the kubelets' own lines:\n%s", all)
	}
}

// testDoctor expects that the rules of the kubelet's configuration judge the kubelet's command line.
func (n *nssmOfNode) testDoctor(t *testing.T) {
	r := n.doctor(t)
	r.expectLooked(t, "kubelet-config", "kubelet-cgroups", "kubelet-health")
	for _, f := range r.Nodes[0].Findings {
		switch f.Rule {
		case "kubelet-health", "kubelet-service", "service-program", "outdated-process":
			t.Errorf("%+v", f)
		}
	}
	if !slices.Contains(r.worse(), "kubelet-cgroups") {
		t.Errorf(`the cgroups of C:\k\config.yaml were not found: %v`, r.worse())
	}
}

func (n *nssmOfNode) doctor(t *testing.T) doctorReport {
	t.Helper()
	return decoded[doctorReport](t, swdt(t, "doctor", "-c", n.config, "-o", "json"))
}

// testProgramsThatEnd pushes kubelets that do not come up, with each action that nssm knows for their end.
func (n *nssmOfNode) testProgramsThatEnd(t *testing.T) {
	for _, c := range []struct{ fault, exit, logs string }{
		{"-crash-at-start", "Restart", "made to crash at start"}, {"-crash-starting", "Ignore", "made to crash while starting"},
		{"-hang-at-start", "Exit", "main.main()"}, {"-unhealthy", "Restart", "Started kubelet"},
	} {
		n.set(t, "AppExit", "Default", c.exit)
		r := swdt(t, "push", "-c", n.nodeFile(t, "v1.29.1", c.fault, kubeletExe))
		if r.code != 4 || !strings.Contains(r.stderr, "back to the previous binaries") || !strings.Contains(r.stderr, c.logs) {
			t.Errorf("%s, %s: %s", c.fault, c.exit, r)
		}
		if s := n.runs(t, "v1.29.0"); s.Drift != "none" {
			t.Errorf("%s, %s: %+v", c.fault, c.exit, s)
		}
	}
	n.set(t, "AppExit", "Default", "Restart")
}

// testPaused makes nssm pause the service, since its program ends at once again and again. A push of a good
// program brings it back.
func (n *nssmOfNode) testPaused(t *testing.T) {
	n.exec(t, "net", "stop", "kubelet")
	n.copy(t, "kubelet-v1.29.1-crash-at-start.exe", kubeletExe)
	swdt(t, "exec", "-c", n.config, "--", "net", "start", "kubelet") // it may fail: the service does not run
	within(t, time.Minute, "a paused service", func() error {
		if s := n.exec(t, nssmExe, "status", "kubelet"); !strings.Contains(s, "SERVICE_PAUSED") {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	within(t, time.Minute, "a finding", func() error { // nssm tries again meanwhile
		r := n.doctor(t)
		for _, f := range r.Nodes[0].Findings {
			if f.Rule == "kubelet-service" && strings.Contains(f.What, "paused") && strings.Contains(f.Remedy, "sc.exe continue kubelet") {
				return nil
			}
		}
		return fmt.Errorf("%+v", r.Nodes[0].Findings)
	})
	n.push(t, n.config, "v1.29.0")
	n.runs(t, "v1.29.0")
}

// testNames registers the program under names without a drive: CreateProcess finds it beside nssm.exe or in
// the PATH, which has C:\k, and not in AppDirectory.
func (n *nssmOfNode) testNames(t *testing.T) {
	n.restart(t, "kubelet.exe", n.arguments, `C:\windows`)
	n.runs(t, "v1.29.0")
	n.exec(t, "net", "stop", "kubelet")
	n.set(t, "Application", `.\kubelet.exe`)
	n.set(t, "AppDirectory", `C:\k`)
	swdt(t, "exec", "-c", n.config, "--", "net", "start", "kubelet")
	eventually(t, "the end of nssm", func() error {
		if s := n.status(t); s.Service.State != "stopped" || s.Drift != "unknown" || s.Runs != "" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// restart lets nssm run another command.
func (n *nssmOfNode) restart(t *testing.T, program, arguments, folder string) {
	t.Helper()
	swdt(t, "exec", "-c", n.config, "--", "net", "stop", "kubelet") // it may be stopped
	n.set(t, "Application", program)
	n.set(t, "AppParameters", arguments)
	n.set(t, "AppDirectory", folder)
	n.exec(t, "net", "start", "kubelet")
}

// testWrappers lets nssm run the kubelet through a shell, and through the real kube-log-runner.
func (n *nssmOfNode) testWrappers(t *testing.T) {
	n.restart(t, `C:\windows\system32\cmd.exe`, `/c "`+kubeletExe+` `+n.arguments+` 2>C:\k\logs\shell.log"`, `C:\k`)
	n.runs(t, "v1.29.0")
	n.push(t, n.nodeFile(t, "v1.28.0", "", kubeletExe), "v1.28.0")
	n.runs(t, "v1.28.0")

	n.restart(t, logRunnerExe, `--log-file=C:/k/logs/runner.log `+kubeletExe+` `+n.arguments, `C:\k`)
	n.runs(t, "v1.28.0")
	n.push(t, n.config, "v1.29.0")
	n.runs(t, "v1.29.0")
	if r := swdt(t, "push", "-c", n.nodeFile(t, "v1.29.1", "-crash-starting", kubeletExe)); r.code != 4 {
		t.Errorf("a kubelet that ends behind two wrappers: %s", r)
	}
	n.runs(t, "v1.29.0")
	if list := ok(t, "logs", "list", "-c", n.config).stdout; !strings.Contains(list, `C:\k\logs\runner.log`) {
		t.Errorf("the logs are\n%s", list)
	}
}
