package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// service returns a pod for Windows with a Service that has more fields.
func service(fields string) string {
	pod := strings.Replace(lint.Manifest("hostname: web"), "  name: web", "  name: web\n  labels: {app: web}", 1)
	return pod + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n" + fields
}

// Values that the API server itself writes into objects, and those that Windows handles as Linux does, are no findings.
// 10800 s is DefaultClientIPServiceAffinitySeconds, 0644 is SecretVolumeSourceDefaultMode (pkg/apis/core/v1/defaults.go and
// staging/src/k8s.io/api/core/v1/types.go of Kubernetes 1.36.3). kube-proxy asks the host network service whether it has
// direct server return for externalTrafficPolicy Local (pkg/proxy/winkernel/proxier.go), so a flag does not matter.
func TestDefaultsAreNoFindings(t *testing.T) {
	const affinity = "  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: "
	const secret = "volumes: [{name: v, secret: {secretName: s, defaultMode: "
	for text, want := range map[string]string{
		service(affinity + "10800}}\n"):                                   "",
		service(affinity + "10801}}\n"):                                   "svc-affinity-timeout",
		service("  sessionAffinityConfig: {}\n"):                          "",
		service("  type: LoadBalancer\n  externalTrafficPolicy: Local\n"): "",
		lint.Manifest(secret + "420}}]"):                                  "",
		lint.Manifest(secret + "0644}}]"):                                 "",
		lint.Manifest(secret + "0400}}]"):                                 "vol-modes",
	} {
		if got := ruleIDs(checked(t, text)); got != want {
			t.Errorf("%q, want %q in\n%s", got, want, text)
		}
	}
}

// ruleIDs returns the rules of all findings.
func ruleIDs(report lint.Report) string {
	var all []string
	for _, f := range report.Findings {
		all = append(all, f.Rule)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// whats returns the texts of the findings of a rule.
func whats(report lint.Report, rule string) (all []string) {
	for _, f := range report.Findings {
		if f.Rule == rule {
			all = append(all, f.What)
		}
	}
	return all
}

// kubelet hands the cluster's DNS to the runtime for all pods with ClusterFirstWithHostNet (getPodDNSType in
// pkg/kubelet/network/dns/dns.go of Kubernetes 1.36.3). HostProcess pods are in the node's network, which keeps its own.
func TestTexts(t *testing.T) {
	const powershell = `'C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe'`
	const hostProcess = "hostNetwork: true\nsecurityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM'}}"
	for name, test := range map[string]struct{ text, rule, want string }{
		"DNS of a HostProcess pod": {"dnsPolicy: ClusterFirstWithHostNet\n" + hostProcess, "dns-hostnet",
			"Windows does not support ClusterFirstWithHostNet: the pods resolve names as the node does"},
		"DNS of another pod": {"dnsPolicy: ClusterFirstWithHostNet", "dns-hostnet", "ClusterFirstWithHostNet has the effect of ClusterFirst on Windows"},
		"PowerShell by its path": {"  livenessProbe: {exec: {command: [" + powershell + ", -Command, x]}}", "life-powershell",
			"the livenessProbe of container web has 1 second to start PowerShell"},
		"a command": {"  command: [sh]", "life-shell", "the command of container web is sh, which no base image of Windows has"},
		"a hook": {"  lifecycle: {preStop: {exec: {command: [sh]}}}", "life-shell",
			"the hook preStop of container web is sh, which no base image of Windows has"},
		"hostPID":    {"hostPID: true", "sec-linux-field", "the API server rejects hostPID: true of a Windows pod"},
		"sysctls":    {"securityContext: {sysctls: [{name: a, value: b}]}", "sec-linux-field", "the API server rejects sysctls of a Windows pod, unless they are empty"},
		"privileged": {"  securityContext: {privileged: false}", "sec-linux-field", "the API server rejects privileged of a Windows pod, whatever its value"},
	} {
		if got := whats(checked(t, lint.Manifest(test.text)), test.rule); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	var r lint.Reader
	r.File("a.yaml", []byte("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: 'a:1'}]}\n"))
	const want = "the pods are for Windows, as --assume-windows demands, and nothing places them on Windows nodes"
	if got := whats(r.Check(lint.Options{AssumeWindows: true}), "place-no-selector"); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}
