package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Each text is a whole file; want is the whole error, line by line.
func TestLoadProblems(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"unknown field": {
			head + "    privatekey: x\n  setup:\n    enableRDPs: true\n    chocPackages: [vim]\n    zzz: 1\n",
			`-:7: spec.credentials.privatekey: unknown field; did you mean privateKey?
-:9: spec.setup.enableRDPs: unknown field; did you mean enableRDP?
-:10: spec.setup.chocPackages: unknown field; did you mean chocoPackages?
-:11: spec.setup.zzz: unknown field; ` +
				`known here: enableRDP, chocoPackages, features, hosts, environment, path, firewall, openSSH, registry, automaticUpdates, defender`,
		},
		"names of other tools": {
			head + "  kubernetes:\n    deploys: []\n",
			"-:8: spec.kubernetes.deploys: is a field of an older swdt; `swdt config convert -` writes it as provisioners",
		},
		// https://kind.sigs.k8s.io/docs/user/quick-start/#configuring-your-kind-cluster
		"a configuration of kind": {
			"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n- role: worker\n",
			"-:2: apiVersion: kind.x-k8s.io/v1alpha4 is a configuration of kind, which swdt writes itself; " +
				"`swdt cluster init` writes a Cluster of swdt to start from",
		},
		// https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/
		"a configuration of kubeadm": {
			"apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n",
			"-:1: apiVersion: \"kubeadm.k8s.io/v1beta4\" is not understood; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node",
		},
		"fields of another place": {
			strings.Replace(head, "metadata: {name: n}", "metadata:\nname: n", 1) + "hostname: h\n",
			"-:3: metadata.name: is missing; name the node, as used with --node\n" +
				"-:4: name: unknown field; name belongs under metadata or spec.machine.network.ports[] or " +
				"spec.setup.firewall[] or spec.setup.registry[] or spec.kubernetes.join.controlPlaneAlias or spec.kubernetes.provisioners[]: " +
				"check the indentation\n" +
				"-:8: hostname: unknown field; hostname belongs under spec.credentials: check the indentation",
		},
		"a joined line": {
			head + "  setup:\n    chocoPackages:\n      - vim\n       - grep\n",
			"-:9: spec.setup.chocoPackages[0]: goes on in the next line, which YAML joins to it; align the next field " +
				"or dash with its neighbours, or write the value on one line",
		},
		"twice": {
			head + "    username: a\n    username: b\n",
			"-:8: spec.credentials.username: is set twice, first on line 7; remove one of them",
		},
		"wrong types": {
			head + "  setup:\n    enableRDP: \"yes\"\n    chocoPackages: vim\n    environment: [A]\n    hosts: {a: b}\n",
			`-:8: spec.setup.enableRDP: is a text; write true or false (without quotes)
-:9: spec.setup.chocoPackages: is a text; write a list (each item begins with - )
-:10: spec.setup.environment: is a list; write a mapping of names to values
-:11: spec.setup.hosts: is a mapping; write a list (each item begins with - )`,
		},
		"no space after the last colon": {
			"apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: n}\nspec:\n  credentials:\n    " +
				"hostname:h\n",
			"-:6: spec.credentials: is a text; put a space after hostname:",
		},
		"duration": {
			head + provisioner +
				"        destination: c:\\k\\kubelet.exe\n        health: {settle: 5, timeout: -1s, stopTimeout: 2h}\n",
			`-:12: spec.kubernetes.provisioners[0].health.settle: "5" is not a duration such as 90s, 5m or 1m30s; ` +
				`write a number with its unit
-:12: spec.kubernetes.provisioners[0].health.timeout: -1s is not a time to wait; write a duration such as 30s
-:12: spec.kubernetes.provisioners[0].health.stopTimeout: 2h0m0s is too long; write at most 1h0m0s`,
		},
		"missing": {
			"apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata:\nspec:\n  kubernetes:\n    provisioners:\n   " +
				"   - version: 1\n      -\n",
			`-:3: metadata.name: is missing; name the node, as used with --node
-:4: spec.credentials.hostname: is missing; write host or host:port, such as 192.168.122.220:22
-:7: spec.kubernetes.provisioners[0].name: is missing; name the Windows service, such as kubelet
-:7: spec.kubernetes.provisioners[0].sourceURL: is missing; ` +
				`write a path, file://…, http://…, https://… or oci://…
-:7: spec.kubernetes.provisioners[0].destination: is missing; ` +
				`write the absolute path of the file on the node, such as C:\k\kubelet.exe
-:8: spec.kubernetes.provisioners[1]: is empty; write the item or remove the dash`,
		},
		"destination": {
			head + provisioner + "        destination: \"c:\\new\\bin.exe\"\n",
			`-:11: spec.kubernetes.provisioners[0].destination: has a control character: ` +
				`in double quotes a backslash begins an escape; write 'c:\new\bin.exe', in single quotes`,
		},
		"registry": {
			head + "  setup:\n    registry:\n      - {key: HKLM\\SOFTWARE\\A, name: B, dword: 4294967295}\n" +
				"      - {key: HKLM\\SOFTWARE\\A, name: C, dword: 4294967296}\n      - {key: HKLM\\SOFTWARE\\A, name: D, dword: -1}\n" +
				"      - {key: HKLM\\SOFTWARE\\A, name: E, dword: \"1\"}\n      - {key: HKLM\\SOFTWARE\\A, name: F, string: 1}\n",
			`-:10: spec.setup.registry[1].dword: is a number; write a whole number from 0 to 4294967295 (without quotes)
-:11: spec.setup.registry[2].dword: is a number; write a whole number from 0 to 4294967295 (without quotes)
-:12: spec.setup.registry[3].dword: is a text; write a whole number from 0 to 4294967295 (without quotes)`,
		},
		"kind": {
			"apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nspec: {workload: {}}\n---\napiVersion: v1\nkind: " +
				"Node\n---\nkind: Node\n---\napiVersion: windows.k8s.io/v1alpha1\nkind: node\n---\n[1]\n---\n{}\n",
			"-:2: kind: this Cluster is the format of an older swdt; `swdt config convert -` writes it as Cluster and Node\n" +
				"-:5: apiVersion: \"v1\" is not understood; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node\n" +
				"-:8: apiVersion: is missing; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node\n" +
				"-:11: kind: \"node\" is not understood; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node\n" +
				"-:13: is a list, not a node; `swdt config init` writes a file to start from\n" +
				"-:15: kind: is missing; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node",
		},
		"a broken document hides no other": {
			"a: b: c\n---\n" + head + "    user: x\n",
			"-:1: the value has a colon and a space in it, which begin another value; put the value in single " +
				"quotes, or a line break before the second field\n" +
				"-:9: spec.credentials.user: unknown field; did you mean username?",
		},
		"same name": {
			head + "---\n" + head,
			"-:10: metadata.name: n is the name of another node too (-:3); give each node a name of its own",
		},
		"nothing": {"# nothing\n---\n---\n",
			"-:1: there is no node in it; `swdt config init` writes a file to start from"},
		"binary": {"MZ\x90\x00\x03", "-:1: it is UTF-8, with the byte 0x90, which is of another encoding; save the " +
			"file as UTF-8 without a byte order mark"},
		// An editor with the code page 1252.
		"code page": {head + "    username: B\xfcro\n", "-:7: it is UTF-8, with the byte 0xfc, which is of another " +
			"encoding; save the file as UTF-8 without a byte order mark"},
		// A file after a loss of power: kubernetes/minikube#8195.
		"NUL characters": {"\x00\x00\x00\x00", "-:1: it is UTF-8, with nothing but NUL characters; save the file as " +
			"UTF-8 without a byte order mark"},
		"a tagged text": {head + "    username: !x y\n",
			"-:7: spec.credentials.username: begins with !, which is a tag to YAML; put the value in single quotes"},
		"a merge of nothing": {
			head + "    <<: 5\n",
			"-:7: spec.credentials: << merges a number; merge a mapping",
		},
		"a huge key": {
			head + "    ? [a]\n    : b\n    \"a\\nb\": c\n",
			"-:7: spec.credentials: has a key that is no text; write a field's name before the colon\n" +
				`-:9: spec.credentials."a\nb": unknown field; known here: username, hostname, privateKey, ` +
				`passphraseFrom, password, passwordFrom, hostKey, proxyJump, kubernetes`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadSyntax(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"tab": {head + "\tusername: x\n    password: y\n",
			"-:7: the line is indented with a tab, which YAML forbids; indent with spaces"},
		"domain user": {head + "    username: \"CORP\\user\"\n",
			`-:7: the value of username has a backslash in double quotes, where it begins an escape; ` +
				`write 'CORP\user', in single quotes`},
		"domain bob": {head + "    username: \"CORP\\bob\"\n",
			`-:7: spec.credentials.username: has a control character: ` +
				`in double quotes a backslash begins an escape; write 'CORP\bob', in single quotes`},
		"domain tom": {head + "    username: \"CORP\\tom\"\n",
			`-:7: spec.credentials.username: has a control character: ` +
				`in double quotes a backslash begins an escape; write 'CORP\tom', in single quotes`},
		"secret escape": {head + "    password: \"a\\bc\"\n",
			`-:7: spec.credentials.password: has a control character: ` +
				`in double quotes a backslash begins an escape; use single quotes, or none, as in c:\k\kubelet.exe`},
		"escape": {head + provisioner + "        destination: \"c:\\k\\kubelet.exe\"\n",
			`-:11: the value of destination has a backslash in double quotes, where it begins an escape; ` +
				`write 'c:\k\kubelet.exe', in single quotes`},
		"colon inside": {head + "    username: a: b\n",
			"-:7: the value of username has a colon and a space in it, which begin another value; put the value in " +
				"single quotes, or a line break before the second field"},
		"no space": {head + "    username:a\n    password: b\n",
			"-:7: there is no space after username:; put one there"},
		"open quote": {head + "    username: \"a\n  setup:\n    enableRDP: true\n",
			"-:7: the value of username begins with a quote that is not closed; add the quote at its end"},
		"open single": {head + "    username: 'a\n",
			"-:7: the value of username begins with a quote that is not closed; add the quote at its end"},
		"after quote": {head + "    username: 'it's'\n    password: x\n",
			"-:7: the value of username goes on after its closing quote; put the whole value in quotes; a single " +
				"quote in single quotes is written twice"},
		"at sign": {head + "    password: @secret\n",
			"-:7: the value of password begins with @, which has a meaning of its own in YAML; put the value in " +
				"single quotes"},
		"star": {head + "    password: *secret\n",
			"-:7: the value of password begins with *, which has a meaning of its own in YAML; put the value in " +
				"single quotes"},
		"open bracket": {head + "  setup:\n    chocoPackages: [vim, grep\n    enableRDP: true\n",
			"-:8: the value of chocoPackages begins with [ and is not closed well; close the bracket, put commas " +
				"between the items, or quote the value"},
		"deeper": {head + "      username: a\n",
			"-:7: the line is indented deeper than the one above, which has a value already; align fields of the same " +
				"level"},
		"between": {head + "   username: a\n",
			"-:7: the line is indented by 3 spaces, which lines up with nothing above it; align fields of the same " +
				"level"},
		"no colon": {head + "    username\n    password: x\n",
			"-:7: there is no colon in the line; write field: value"},
		"published sample": {"metadata:\n  - name: containerd:\n    version: 1\n",
			"-:2: the value of name ends in a colon; remove the colon at the end of the line"},
		"no dash space": {head + "  kubernetes:\n    provisioners:\n      -name: a\n       version: 1\n",
			"-:9: there is no space after the dash; put one there"},
		"dash": {head + provisioner + "    - name: b\n",
			"-:11: the item's dash is indented by 4 spaces, the dash of line 9 by 6; align the dashes of a list"},
		"merge conflict": {"<<<<<<< HEAD\n" + head, "-:1: the line marks a merge conflict; resolve it with git"},
		"one space": {head + " setup: {}\n",
			"-:7: the line is indented by 1 space, which lines up with nothing above it; align fields of the same " +
				"level"},
		"old Mac": {strings.ReplaceAll(head, "\n", "\r") + "\tx\r",
			"-:7: the line is indented with a tab, which YAML forbids; indent with spaces"},
		"second document": {head + "---\n" + head + "    username: a: b\n",
			"-:14: the value of username has a colon and a space in it, which begin another value; put the value in " +
				"single quotes, or a line break before the second field"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != test.want {
				t.Errorf("\ngot  %s\nwant %s", err, test.want)
			}
		})
	}
}

func TestLoadScalars(t *testing.T) {
	documents, err := loadText(t, head+`    username: 007
    password: 1e3
    privateKey:
  setup:
    environment: {DEBUG: true, LEVEL: 1.10, EMPTY: }
  kubernetes:
    provisioners:
      - name: kubelet
        version: 1.30
        sourceURL: k.exe
        destination: C:/k//kubelet.exe
        args: [--v, 4, on]
        health: {settle: 1m30s, timeout: 2m}
`)
	if err != nil {
		t.Fatal(err)
	}
	spec := documents[0].Node.Spec
	pr := spec.Kubernetes.Provisioners[0]
	got := []any{spec.Credentials.Username, spec.Credentials.Password, spec.Credentials.PrivateKey,
		spec.Setup.Environment, pr.Version, pr.Destination, pr.Args, pr.Health.Settle.String(), pr.Health.HTTPGet}
	want := []any{"007", "1e3", "", map[string]string{"DEBUG": "true", "LEVEL": "1.10", "EMPTY": ""}, "1.30",
		`C:\k\kubelet.exe`, []string{"--v", "4", "on"}, "1m30s", "http://127.0.0.1:10248/healthz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	documents, err := loadText(t, head+"    password: hunter2\n"+provisioner+
		"        destination: c:\\k\\kubelet.exe\n---\n"+
		strings.Replace(head, "name: n", "name: m", 1)+"    password: #hunter2\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-:7: spec.credentials.password: the password is in the file in clear text; use passwordFrom with env or " +
			"file, or a key",
	}
	if diff := cmp.Diff(want, documents[0].Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = []string{"-:20: spec.credentials.password: is empty: to YAML, what follows # is a comment; put the value " +
		"in single quotes"}
	if diff := cmp.Diff(want, documents[1].Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However a file with a password is broken, no problem and no warning contains the
// password.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "hunter2secret"
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SampledFrom([]string{"", "'", `"`, "@", "*", "&", "!", "%", "[", "{", "- ", "|", ">",
			"a: ", "`", "\\", "\t", "?", "#", "<<: ", "{a: ", `"\q`, "\n      "}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", "'", `"`, ":", ": b", "]", "}", ": ]", "\n x", "\n\ty: z", ":b",
			" #", ", a: b}", "\n      - x", "\n    x: &a [*a]"}).Draw(t, "after")
		field := rapid.SampledFrom([]string{"password: ", "password:", "password", "passwordFrom: ",
			"passwordFrom: {env: ", "passphraseFrom: {env: $", "password: !!int ", "privateKey: "}).Draw(t, "field")
		if field == "privateKey: " {
			before = "-----BEGIN PRIVATE KEY-----" + before
		}
		tail := rapid.SampledFrom([]string{"", "    username: a\n", "  setup: {}\n", "\t\n", "  x\n"}).Draw(t, "tail")
		text := head + "    " + field + before + secret + after + "\n" + tail
		documents, err := Load([]string{Stdin}, strings.NewReader(text))
		said := ""
		if err != nil {
			said = err.Error()
		}
		for _, document := range documents {
			said += strings.Join(document.Warnings, "\n")
		}
		if strings.Contains(said, secret) {
			t.Fatalf("the secret shows in\n%s\nof\n%s", said, text)
		}
	})
}

// lines returns the number of the last line of a file.
func lines(file string) int {
	text, err := windowstext.Decode([]byte(file))
	if err != nil {
		return strings.Count(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(file), "\n") + 1
	}
	return strings.Count(text.Content, "\n") + 1
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error is %T", err)
	}
	last := max(lines(text), 1)
	for _, problem := range failure.Problems {
		tooLarge := problem.Line == 0 && len(text) > maxSize
		switch {
		case problem.File != Stdin:
			t.Errorf("problem.File = %v, want %v", problem.File, Stdin)
		case (problem.Line < 1 || problem.Line > last) && !tooLarge:
			t.Errorf("incomplete problem %+v", problem)
		case problem.What == "":
			t.Error("problem.What is empty")
		case problem.Remedy == "":
			t.Errorf("problem.Remedy is empty; incomplete problem %+v", problem)
		}
		if line := problem.String(); strings.Contains(line, "\n") {
			t.Errorf("problem on several lines: %q", line)
		}
	}
}

// Each text is the part of a node file below spec.kubernetes, from line 9 on; want is the whole
// error, or the warnings.
func TestNestedDocuments(t *testing.T) {
	const toml, patch = "-:%d: spec.kubernetes.containerd.config: ", "-:9: spec.kubernetes.kubelet.configPatch"
	const quotes = `write Windows paths in single quotes, as in root = 'C:\containerd'`
	for name, row := range map[string]struct{ text, want, warnings string }{
		// Siemens-Healthineers/K2s#2376
		"an escape": {"    containerd:\n      config: |\n        version = 2\n\n        root = \"D:\\Somewhere\\root\"\n",
			fmt.Sprintf(toml, 12) + "has a backslash in double quotes, where it begins an escape; " + quotes, ""},
		"a tab": {"    containerd:\n      config: |\n        # the root\n        root = \"D:\\temp\"\n",
			fmt.Sprintf(toml, 11) + "root has a backslash in double quotes, where it begins an escape; " + quotes, ""},
		"on one line": {"    containerd: {config: 'root = \"D:\\Somewhere\"'}\n",
			fmt.Sprintf(toml, 8) + "line 1 of the TOML: has a backslash in double quotes, where it begins an escape; " + quotes, ""},
		"an unknown key": {"    containerd:\n      config: |\n        rooot = 'D:\\x'\n", "",
			fmt.Sprintf(toml, 10) + "rooot is unknown to containerd, which ignores it; remove it, or correct its name"},
		// opsnull/follow-me-install-kubernetes-cluster#458, kubernetes/kubernetes#65455
		"wrong types": {"    kubelet:\n      configPatch: {maxPods: \"40\", evictionSoft: nil, maxPod: 3}\n",
			patch + "[evictionSoft]: is a text, with which kubelet does not start; write a mapping of names to values\n" +
				patch + "[maxPod]: is not a field of KubeletConfiguration: kubelet ignores it; did you mean maxPods?\n" +
				patch + "[maxPods]: is a text, with which kubelet does not start; write a whole number without quotes, " +
				"in the range of int32", ""},
		"an unknown field": {"    kubelet:\n      configPatch: {maxPod: 3}\n", "",
			patch + "[maxPod]: is not a field of KubeletConfiguration: kubelet ignores it; did you mean maxPods?"},
		"another case": {"    kubelet:\n      configPatch: {cgroupsPerQos: false}\n", "",
			patch + "[cgroupsPerQos]: has another case than kubelet's field cgroupsPerQOS, so that kubelet may ignore it; " +
				"write cgroupsPerQOS"},
		"another apiVersion": {"    kubelet:\n      configPatch: {apiVersion: kubelet.config.k8s.io/v1, kind: KubeletConfiguration}\n",
			patch + "[apiVersion]: is not kubelet.config.k8s.io/v1beta1, the only one with which kubelet starts; remove it: swdt writes it", ""},
		"a field of a field": {"    kubelet:\n      configPatch:\n        logging:\n          verbosity: 3\n          format: 4\n",
			"-:12: spec.kubernetes.kubelet.configPatch[logging].format: is a number, with which kubelet does not start; " +
				"write a text, in quotes if it looks like a number or like true", ""},
		"an item": {"    kubelet:\n      configPatch:\n        registerWithTaints:\n        - os=windows:NoSchedule\n",
			"-:11: spec.kubernetes.kubelet.configPatch[registerWithTaints][0]: is a text, with which kubelet does not start; " +
				"write what the field's documentation shows", ""},
		"a key that is a number": {"    kubelet:\n      configPatch: {evictionHard: {1: x}}\n",
			patch + ": cannot be written for kubelet; use texts as keys, and no infinite numbers", ""},
		"all right": {"    kubelet:\n      configPatch: {maxPods: 40, evictionHard: {memory.available: 100Mi}}\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Load([]string{Stdin}, strings.NewReader(head+"  kubernetes:\n"+row.text))
			got, warnings := "", ""
			if err != nil {
				got = err.Error()
			}
			for _, d := range documents {
				warnings = strings.Join(d.Warnings, "\n")
			}
			if diff := cmp.Diff([]string{row.want, row.warnings}, []string{got, warnings}); diff != "" {
				t.Errorf("the problems differ (-want +got):\n%s", diff)
			}
		})
	}
}
