package lint_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// object is a mapping of JSON.
type object = map[string]any

// field is a field of a pod, with values that it can have. Each is valid on Linux.
type field struct {
	path   string // below the PodSpec, or below a container
	values []any
}

// fieldsOfPods returns the fields that the API server rejects for Windows, and others that it accepts.
func fieldsOfPods() []field {
	return []field{
		{"hostPID", []any{true, false, nil}}, {"hostIPC", []any{true, false, nil}}, {"hostUsers", []any{true, nil}},
		{"shareProcessNamespace", []any{true, false, nil}}, {"hostNetwork", []any{true, false}},
		{"resources", []any{object{"limits": object{"memory": "2Gi", "cpu": "2"}}, nil}},
		{"securityContext.seLinuxOptions", []any{object{}, object{"level": "s0"}, nil}},
		{"securityContext.seLinuxChangePolicy", []any{"Recursive", nil}},
		{"securityContext.seccompProfile", []any{object{"type": "RuntimeDefault"}, nil}},
		{"securityContext.appArmorProfile", []any{object{"type": "RuntimeDefault"}, nil}},
		{"securityContext.fsGroup", []any{0, 1000, nil}}, {"securityContext.fsGroupChangePolicy", []any{"Always", "OnRootMismatch", nil}},
		{"securityContext.sysctls", []any{[]any{}, []any{object{"name": "kernel.shm_rmid_forced", "value": "0"}}, nil}},
		{"securityContext.runAsUser", []any{0, 1000, nil}}, {"securityContext.runAsGroup", []any{0, 1000, nil}},
		{"securityContext.supplementalGroups", []any{[]any{}, []any{1}, nil}}, {"securityContext.supplementalGroupsPolicy", []any{"Merge", "Strict", nil}},
		{"securityContext.runAsNonRoot", []any{true, false}},
		{"securityContext.windowsOptions", windowsOptionsValues()},
	}
}

func fieldsOfContainers() []field {
	return []field{
		{"securityContext.seLinuxOptions", []any{object{}, object{"level": "s0"}, nil}},
		{"securityContext.seccompProfile", []any{object{"type": "RuntimeDefault"}, nil}},
		{"securityContext.appArmorProfile", []any{object{"type": "RuntimeDefault"}, nil}},
		{"securityContext.capabilities", []any{object{}, object{"drop": []any{"ALL"}}, nil}},
		{"securityContext.readOnlyRootFilesystem", []any{true, false, nil}},
		{"securityContext.privileged", []any{false, nil}}, {"securityContext.allowPrivilegeEscalation", []any{true, false, nil}},
		{"securityContext.procMount", []any{"Default", nil}}, {"securityContext.runAsUser", []any{0, 1000, nil}},
		{"securityContext.runAsGroup", []any{0, 1000, nil}}, {"securityContext.runAsNonRoot", []any{true, false}},
		{"securityContext.windowsOptions", windowsOptionsValues()},
	}
}

// windowsOptionsValues returns names at the borders of what is valid. The lengths are those of the validation.
func windowsOptionsValues() []any {
	all := []any{nil, object{}, object{"hostProcess": true}, object{"hostProcess": false}, object{"gmsaCredentialSpecName": "web"},
		object{"gmsaCredentialSpecName": "Web_1"}, object{"gmsaCredentialSpecName": ""}, object{"gmsaCredentialSpec": ""},
		object{"gmsaCredentialSpec": strings.Repeat("x", 64<<10)}, object{"gmsaCredentialSpec": strings.Repeat("x", 64<<10+1)}}
	for _, user := range []string{"", "a", "a b", ".", ". .", `A\b`, `\b`, `A\`, `A\B\C`, `.A\b`, `a.b\c`, `a..b\c`, `a:b\c`, "a\tb", "a\u007fb", "a\u0085b",
		`A\b@c`, "a+b", "a[b", `a/b`, strings.Repeat("u", 104), strings.Repeat("u", 105), strings.Repeat("ü", 60), strings.Repeat("d", 15) + `\u`,
		strings.Repeat("d", 16) + `\u`, strings.Repeat("ü", 15) + `\u`, strings.Repeat("ü", 16) + `\u`, strings.Repeat("d", 63) + `\u`, strings.Repeat("d", 64) + `\u`,
		strings.Repeat("d.", 127) + `d\u`, strings.Repeat("d.", 128) + `d\u`, `NT AUTHORITY\SYSTEM`, `-a\b`, `a-\b`, `a b c\d`, ` \d`, "ContainerAdministrator",
		"a\nb", `a|b\c`, `12345678901234567890\u`, `a_b_c_d_e_f_g_h_i\u`} {
		all = append(all, object{"runAsUserName": user})
	}
	return all
}

// set sets a field at a path of keys with dots.
func set(in object, path string, value any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, ok := in[key].(object)
		if !ok {
			next = object{}
			in[key] = next
		}
		in = next
	}
	in[keys[len(keys)-1]] = value
}

// newPod returns a valid pod without the fields.
func newPod(system string, containers int) (pod, spec object, all []object) {
	container := func(name string) object {
		return object{"name": name, "image": "a:1", "resources": object{"requests": object{"memory": "1Mi", "cpu": "1m"}}}
	}
	spec = object{"nodeSelector": object{"kubernetes.io/os": "windows"}}
	if system != "" {
		spec["os"] = object{"name": system}
	}
	var regular, first []any
	for i := range containers {
		one := container(fmt.Sprintf("c%d", i))
		all = append(all, one)
		if i == 2 {
			first = append(first, one)
			continue
		}
		regular = append(regular, one)
	}
	spec["containers"] = regular
	if first != nil {
		spec["initContainers"] = first
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "a", "namespace": "default"}, "spec": spec}, spec, all
}

// onePerField returns pods in which a single field has a single value.
func onePerField() (all []object) {
	for _, system := range []string{"windows", "linux", ""} {
		for _, f := range fieldsOfPods() {
			for _, value := range f.values {
				pod, spec, _ := newPod(system, 1)
				set(spec, f.path, value)
				all = append(all, pod)
			}
		}
		for _, f := range fieldsOfContainers() {
			for _, value := range f.values {
				for i := range 3 {
					pod, _, containers := newPod(system, 3)
					set(containers[i], f.path, value)
					all = append(all, pod)
				}
			}
		}
	}
	return all
}

// linted has the fields that swdt lint reports as rejected, and whether it reports the standard as broken.
type linted struct {
	fields  []string
	refused bool
}

func lintOf(t *testing.T, pod object, standard string) linted {
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var r lint.Reader
	r.File("a.json", []byte(strings.NewReplacer("\u007f", `\u007f`, "\u0085", `\u0085`).Replace(string(text)))) // YAML has no such bytes
	r.File("namespace.yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {pod-security.kubernetes.io/enforce: "+standard+"}}\n"))
	is := linted{fields: []string{}}
	for _, f := range r.Check(lint.Options{AssumeWindows: true}).Findings {
		switch {
		case f.Rule == "sec-psa":
			is.refused = true
		case f.Effect == lint.Rejected:
			is.fields = append(is.fields, f.Field)
		}
	}
	slices.Sort(is.fields)
	is.fields = slices.Compact(is.fields)
	return is
}
