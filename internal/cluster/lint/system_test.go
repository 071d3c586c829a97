package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// rules returns the rules of findings of a severity or worse, each once.
func rules(report lint.Report, worst finding.Severity) (all []string) {
	for _, f := range report.Findings {
		if f.Ignored == "" && f.Severity.AtLeast(worst) && !slices.Contains(all, f.Rule) {
			all = append(all, f.Rule)
		}
	}
	slices.Sort(all)
	return all
}

// Clouds, pools and RuntimeClasses choose nodes in ways of their own. A pod that lands on Windows nodes alone needs no
// other selector; one whose selector does not name the system may land elsewhere.
func TestPlacesOfWindowsPods(t *testing.T) {
	const host = "hostNetwork: true\nos: null\nsecurityContext: {windowsOptions: {hostProcess: true}}\n"
	for name, test := range map[string]struct{ spec, want string }{
		"the old label":              {host + "nodeSelector: {beta.kubernetes.io/os: windows}", ""},
		"a build":                    {host + "nodeSelector: {node.kubernetes.io/windows-build: 10.0.20348}", ""},
		"AKS' release":               {host + "nodeSelector: {kubernetes.azure.com/os-sku: Windows2022}", ""},
		"GKE's distribution":         {host + "nodeSelector: {cloud.google.com/gke-os-distribution: windows_ltsc}", ""},
		"a pool":                     {host + "nodeSelector: {pool: a}", "place-no-selector"},
		"nothing":                    {host + "nodeSelector: null", "place-no-selector"},
		"an affinity":                {host + "nodeSelector: null\n" + affinity("In", "windows"), ""},
		"not Linux":                  {host + "nodeSelector: null\n" + affinity("NotIn", "linux"), ""},
		"either of two":              {host + "nodeSelector: null\n" + affinity("In", "windows, linux"), "place-no-selector"},
		"Linux with a Windows image": {"os: null\nnodeSelector: {kubernetes.io/os: linux}", "place-linux-has-windows"},
		"a pod of unknown system":    {"os: null\nnodeSelector: null\ncontainers: [{name: a, image: 'nginx:1', securityContext: {privileged: true}}]", ""},
		"an image for Windows":       {"os: null\nnodeSelector: null", "place-no-selector"},
	} {
		if got := strings.Join(rules(checked(t, lint.Manifest(test.spec)), finding.Warning), " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func affinity(operator, values string) string {
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
		"[{key: kubernetes.io/os, operator: " + operator + ", values: [" + values + "]}]}]}}}"
}

// A RuntimeClass that selects Windows nodes places its pods there.
func TestARuntimeClassPlacesPods(t *testing.T) {
	const class = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: hyperv}\nhandler: runhcs-wcow-hypervisor\n"
	for scheduling, want := range map[string]string{"": "place-no-selector", "scheduling: {nodeSelector: {kubernetes.io/os: windows}}\n": ""} {
		text := class + scheduling + "---\n" + lint.Manifest("nodeSelector: null\nruntimeClassName: hyperv")
		if got := strings.Join(rules(checked(t, text), finding.Warning), " "); got != want {
			t.Errorf("%q: %q, want %q", scheduling, got, want)
		}
	}
}

// Without spec.os.name, fields that only take rights away are notes: the pod needs no more than Windows gives. Fields
// that the pod relies on are warnings.
func TestFieldsThatWindowsIgnores(t *testing.T) {
	for field, want := range map[string]finding.Severity{
		"capabilities: {drop: [ALL]}":            finding.Info,
		"capabilities: {add: [NET_ADMIN]}":       finding.Warning,
		"seccompProfile: {type: RuntimeDefault}": finding.Info,
		"allowPrivilegeEscalation: false":        finding.Info,
		"privileged: false":                      finding.Info,
		"privileged: true":                       finding.Warning,
		"readOnlyRootFilesystem: true":           finding.Warning,
		"readOnlyRootFilesystem: false":          finding.Info,
		"runAsUser: 1000":                        finding.Warning,
	} {
		text := strings.Replace(lint.Manifest("  securityContext: {"+field+"}"), "  os: {name: windows}\n", "", 1)
		var got []finding.Severity
		for _, f := range checked(t, text).Findings {
			if f.Rule == "sec-linux-field" {
				got = append(got, f.Severity)
			}
		}
		if !slices.Equal(got, []finding.Severity{want}) {
			t.Errorf("%s: %v, want %s", field, got, want)
		}
	}
}

// A hook or a probe may name a program that is in the image for Linux alone; a preStop of a published CSI driver does.
func TestProgramsOfLinux(t *testing.T) {
	for command, want := range map[string]string{
		"[/bin/agent, stop]":         "life-shell",
		"[/usr/local/bin/agent]":     "life-shell",
		"[bash, -c, exit]":           "life-shell",
		"[/agent.exe, stop]":         "",
		"[curl, localhost]":          "",
		"['C:\\bin\\sh.exe']":        "",
		"[powershell, -File, a.ps1]": "",
	} {
		report := checked(t, lint.Manifest("  lifecycle: {preStop: {exec: {command: "+command+"}}}"))
		if got := strings.Join(rules(report, finding.Warning), " "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// A value that the API server cannot read is an error, with the line of the value.
func TestFormsThatTheServerRefuses(t *testing.T) {
	report := checked(t, lint.Manifest("hostNetwork: false\ncontainers:\n- name: a\n  image: a:1\n  command: [a.exe]\n- name: b\n  image: b:1\n  command: b.exe\n"))
	if len(report.Findings) != 1 || report.Findings[0].Rule != "api-form" || report.Findings[0].Line != 13 ||
		report.Findings[0].Field != "spec.containers[1].command" {
		t.Errorf("%+v", report.Findings)
	}
}

// The error of Go names the embedded struct that volumes have; the finding has the field's own place.
func TestFormOfAVolume(t *testing.T) {
	report := checked(t, lint.Manifest("volumes:\n- name: a\n  emptyDir: {}\n- name: b\n  fc:\n    lun: '2'"))
	if len(report.Findings) != 1 || report.Findings[0].Field != "spec.volumes[1].fc.lun" || report.Findings[0].Line != 11 {
		t.Errorf("%+v", report.Findings)
	}
}

// A template that YAML can read is no object yet: {{.Image}} is a mapping there, or a part of a text.
func TestTemplatesOutsideOfCharts(t *testing.T) {
	for _, text := range []string{
		lint.Manifest("containers:\n- name: a\n  image: {{.Image}}"),
		lint.Manifest("containers:\n- name: a\n  image: a:1\n  resources: {limits: {cpu: '{{$cpu}}'}}"),
	} {
		var r lint.Reader
		r.File("a.yaml", []byte(text))
		report := r.Check(lint.Options{})
		if len(report.Findings) != 0 || len(report.Unread) != 1 || !strings.Contains(report.Unread[0].Why, "template") {
			t.Errorf("%+v", report)
		}
	}
}

// A patch of kustomize has a part of a pod: what it lacks may be in the base. The fields that it has are checked.
func TestPatches(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n"
	for text, want := range map[string]string{
		"      os: {name: windows}\n": "",
		"      securityContext: {windowsOptions: {hostProcess: true}}\n      containers: [{name: web}]\n":                  "",
		"      containers: [{name: web, securityContext: {windowsOptions: {runAsUserName: ''}}}]\n":                        "windows-options",
		"      os: {name: windows}\n      containers: [{name: web, securityContext: {privileged: false}}]\n":               "sec-linux-field",
		"      os: {name: windows}\n      containers: [{name: web, image: 'web:1', resources: {limits: {memory: 1Gi}}}]\n": "place-no-selector",
	} {
		if got := strings.Join(rules(checked(t, head+text), finding.Info), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
