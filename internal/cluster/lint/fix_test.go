package lint_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fixed returns a text after Fix, of notes too, with the report about it.
func fixed(t *testing.T, text string) (string, lint.Report) {
	t.Helper()
	var r lint.Reader
	r.File("a.yaml", []byte(text))
	r.Fix(lint.Options{}, finding.Info)
	return string(r.Texts()[0].After), r.Check(lint.Options{})
}

// Each finding that is fixable is gone after a fix, no other error or warning comes, and a second fix changes nothing.
func TestFixesOfExamples(t *testing.T) {
	fixes := map[string]bool{}
	for _, rule := range lint.Rules() {
		before := lint.Manifest(rule.Bad)
		left := map[string]int{}
		for _, f := range checked(t, before).Findings {
			if f.Rule == rule.ID && f.Fixable {
				fixes[rule.ID] = true
			}
			if !f.Fixable {
				left[f.Rule]++
			}
		}
		after, report := fixed(t, before)
		for _, f := range report.Findings {
			if left[f.Rule]--; f.Fixable || left[f.Rule] < 0 && f.Severity != finding.Info {
				t.Errorf("%s: %+v in\n%s", rule.ID, f, after)
			}
		}
		if again, _ := fixed(t, after); again != after {
			t.Errorf("%s: a second fix makes\n%s\nof\n%s", rule.ID, again, after)
		}
		if after == before && fixes[rule.ID] {
			t.Errorf("%s: nothing is changed", rule.ID)
		}
	}
	if len(fixes) < 15 {
		t.Errorf("fixes of %d rules", len(fixes))
	}
}

func TestFix(t *testing.T) {
	before := `# The web.
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web} # a name
  spec:
    template:
      spec:
        # Rooms.
        containers:
        - name: web   # first
          image: "registry.example/web:ltsc2022"
          securityContext:
            readOnlyRootFilesystem: true
            runAsUser: 1000
          resources: {limits: {memory: 1Gi}}
        hostNetwork: true # why
        dnsPolicy: Default
        securityContext: {windowsOptions: {runAsUserName: web}}
---
apiVersion: v1
kind: Pod
metadata:
  name: host
spec:
  os:
    name: windows
  nodeSelector: {}
  # swdt-lint:ignore vol-memory: small
  volumes:
  - name: v
    emptyDir:
      medium: Memory
  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}, fsGroup: 5}
  containers:
  - {name: a, image: 'a:1', resources: {limits: {memory: 1Gi}}}
`
	after := `# The web.
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web} # a name
  spec:
    template:
      spec:
        # Rooms.
        containers:
        - name: web   # first
          image: "registry.example/web:ltsc2022"
          resources: {limits: {memory: 1Gi}}
        dnsPolicy: Default
        securityContext: {windowsOptions: {runAsUserName: web}}
        nodeSelector:
          kubernetes.io/os: windows
        os:
          name: windows
---
apiVersion: v1
kind: Pod
metadata:
  name: host
spec:
  os:
    name: windows
  nodeSelector: {kubernetes.io/os: windows}
  # swdt-lint:ignore vol-memory: small
  volumes:
  - name: v
    emptyDir:
      medium: Memory
  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}
  containers:
  - {name: a, image: 'a:1', resources: {limits: {memory: 1Gi}}}
  hostNetwork: true
`
	got, report := fixed(t, before)
	if got != after {
		t.Errorf("got\n%s", got)
	}
	for _, f := range report.Findings {
		if f.Severity != finding.Info && f.Ignored == "" {
			t.Errorf("%+v", f)
		}
	}
	changes := map[string]string{}
	for _, f := range report.Fixed {
		changes[f.Rule+" "+f.Field] = f.Change
	}
	for field, want := range map[string]string{
		"sec-linux-field spec.template.spec.containers[0].securityContext.runAsUser": "removed",
		"place-no-selector spec.template.spec.nodeSelector[kubernetes.io/os]":        "set to windows",
		"hpc-hostnetwork spec.hostNetwork":                                           "set to true",
	} {
		if changes[field] != want {
			t.Errorf("%s: %q, want %q of %v", field, changes[field], want, changes)
		}
	}
	windows := strings.ReplaceAll(before, "\n", "\r\n")
	if got, _ := fixed(t, windows); got != strings.ReplaceAll(after, "\n", "\r\n") {
		t.Errorf("with the line ends of Windows:\n%s", got)
	}
}

// Fix leaves what it cannot change, and what it could change in several ways or with another effect.
func TestFixLeaves(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}\n  containers:\n" +
		"  - {name: a, image: 'a:1', resources: {limits: {memory: 1Gi}}}\n"
	for name, text := range map[string]string{
		"an alias": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}\n  containers:\n" +
			"  - name: a\n    image: a:1\n    securityContext: &s\n      privileged: false\n      runAsNonRoot: true\n    resources: {limits: {memory: 1Gi}}\n" +
			"  - name: b\n    image: a:1\n    securityContext: *s\n    resources: {limits: {memory: 1Gi}}\n",
		"a broken document":   "a: [\n---\na: 1\n",
		"a guess":             "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a, image: 'a/cross-windows-amd64:1', securityContext: {privileged: true}}]\n",
		"a contradiction":     strings.Replace(pod, "kubernetes.io/os: windows", "kubernetes.io/os: linux", 1) + "  hostPID: true\n",
		"a RuntimeClass":      pod + "  hostNetwork: true\n  runtimeClassName: runhcs-wcow-hypervisor\n  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM'}}\n",
		"the DNS of the node": pod + "  hostNetwork: true\n",
		"a counted volume":    pod + "  volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]\n",
		"comments inside":     pod + "  securityContext:\n    seLinuxOptions:\n      # ask the team\n      level: s0\n    runAsNonRoot: true\n",
		"a comment that would ignore another field": pod + "  # swdt-lint:ignore res-dra: no\n  hostPID: true\n  resourceClaims: [{name: v}]\n",
		"pods that the API server would reject": strings.Replace(pod, "  os: {name: windows}\n", "", 1) + "  - {name: b, image: 'b:1', securityContext: &s {capabilities: {drop: [ALL]}}, resources: {limits: {memory: 1Gi}}}\n" +
			"  - {name: c, image: 'b:1', securityContext: *s, resources: {limits: {memory: 1Gi}}}\n",
		"another label":          "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n  nodeSelector: {agentpool: win}\n  containers: [{name: a, image: 'a:1'}]\n",
		"no author relies on it": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeName: win-1\n  containers: [{name: a, image: 'a:ltsc2022', securityContext: {capabilities: {drop: [ALL]}}}]\n",
	} {
		if got, _ := fixed(t, text); got != text {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// Notes are fixed only if they are asked for: their fields do no harm.
func TestNotesAreFixedOnDemand(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  hostPID: true\n  containers:\n" +
		"  - {name: a, image: 'a:1', securityContext: {capabilities: {drop: [ALL]}}, resources: {limits: {memory: 1Gi}}}\n"
	var r lint.Reader
	r.File("a.yaml", []byte(text))
	r.Fix(lint.Options{}, finding.Warning)
	if got := string(r.Texts()[0].After); got != strings.Replace(text, "  hostPID: true\n", "", 1) {
		t.Errorf("warnings:\n%s", got)
	}
	if got, _ := fixed(t, text); strings.Contains(got, "capabilities") || !strings.Contains(got, "os:") {
		t.Errorf("notes too:\n%s", got)
	}
}

// A hostile text, in which each line needs a fix, ends after a bounded time; what is left is reported.
func TestFixIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for range 1000 {
		b.WriteString("- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {os: {name: windows}, hostPID: true, containers: []}}\n")
	}
	_, report := fixed(t, b.String())
	if n := len(report.Fixed); n == 0 || n > 100 || len(report.Findings) < 900 {
		t.Errorf("%d fixed, %d left", n, len(report.Findings))
	}
}
