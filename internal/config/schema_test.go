package config

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// An editor that uses the schema accepts and rejects the same files as the loader.
func TestSchemaAgreesWithLoader(t *testing.T) {
	schema := compileSchema(t)
	for name, test := range schemaCases() {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if loads := err == nil; loads != test.good {
				t.Errorf("loader: %v, want good: %t", err, test.good)
			}
			err = schema.Validate(asJSON(t, test.text))
			if fits := err == nil; fits != (test.good || test.beyondSchema) {
				t.Errorf("schema: %v, want good: %t", err, test.good)
			}
		})
	}
}

type schemaCase struct {
	text         string
	good         bool
	beyondSchema bool // wrong in a way that a schema cannot express
}

func schemaCases() map[string]schemaCase {
	cases := map[string]schemaCase{
		"head":      {text: head, good: true},
		"starter":   {text: string(Starter()), good: true},
		"full":      {text: string(FullStarter()), good: true},
		"same name": {text: head + "  setup: {features: [a, A]}\n", beyondSchema: true},
	}
	add := func(good bool, prefix string, bodies ...string) {
		for _, body := range bodies {
			cases[body] = schemaCase{text: prefix + body + "\n", good: good}
		}
	}
	good := func(prefix string, bodies ...string) { add(true, prefix, bodies...) }
	bad := func(prefix string, bodies ...string) { add(false, prefix, bodies...) }

	const node = "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\n"
	bad(node, "metadata: {}\nspec: {credentials: {hostname: h}}", "spec: {credentials: {hostname: h}}",
		"metadata: {name: a b}\nspec: {credentials: {hostname: h}}",
		"metadata: {name: a}\nspec: {}", "metadata: {name: a}\nspec: {credentials: {}}",
		"metadata: {name: a}\nspec: {credentials: {hostname: }}",
		"metadata: {name: a, labels: [b]}\nspec: {credentials: {hostname: h}}",
		"metadata: {name: a}\nspec: {credentials: {hostname: me@h}}")
	good(node, "metadata: {name: 1, labels: {a: 1, b: }}\nspec: {credentials: {hostname: h}}")

	const through = node + "metadata: {name: a}\nspec: {credentials: {kubernetes: "
	good(through, "{}}}", "{node: win-1, context: c, kubeconfig: ~/k, namespace: n, image: 'r/i:v1'}}}",
		"{}, username: }}")
	bad(through, "}}", "{}, hostname: h}}", "{}, password: p}}", "{}, hostKey: x}}", "{node: Win 1}}}",
		"{namespace: A_b}}}", "{image: a b}}}", "{pod: x}}}", "[]}}")
	cases["a VM through its cluster"] = schemaCase{text: through + "{}}, machine: {}}\n", beyondSchema: true}

	good(head, "    privateKey:", "    password: 5", "    privateKey: k\n    password: ''",
		"    passwordFrom: {env: A}", "    passwordFrom:",
		"    passwordFrom: {env: A, file: ''}", "    hostKey: SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"    proxyJump: me@a:22,b")
	bad(head, "    privateKey: k\n    password: p", "    password: p\n    passwordFrom: {env: A}",
		"    passwordFrom: {}", "    passwordFrom: {env: A, file: b}",
		"    passwordFrom: {env: $A}", "    hostKey: MD5:aa", "    proxyJump: a, b", "    privatekey: k",
		"    username: [a]")

	vm := node + "metadata: {name: a}\nspec:\n  machine: "
	good(vm, "{}", "{}\n  credentials: {username: me}", "{cpus: 2, memory: 4Gi, disk: 100G, diskBus: virtio}",
		"{memory: 1.5Gi, accelerator: tcg, timeZone: W. Europe Standard Time}",
		"{driver: qemu, image: {disk: '~/a,b.qcow2'}}", "{image: {iso: a.iso, edition: 2, sha256: "+
			strings.Repeat("aB", 32)+", openSSH: a.msi, productKey: AAAAA-BBBBB-CCCCC-DDDDD-EEEE5}}",
		"{firmware: {secureBoot: true, tpm: true}}",
		"{network: {mode: bridge, bridge: br-0, tap: tap0, address: 172.18.255.10, adapter: virtio}}",
		"{network: {mode: tap, tap: t}}", "{driver: hyperv, network: {bridge: Default Switch}}", "{driver: hyperv}",
		"{driver: libvirt, domain: win 2022, uri: 'qemu:///session', network: {address: 192.168.122.5}}",
		"{network: {ports: [{name: rdp}, {name: ssh, host: 2222}, {name: web, guest: 80, host: 8080}]}}",
		"\n  credentials: {hostname: h}")
	bad(vm, "", "\n  credentials: {username: me}", "{cpus: two}", "{cpus: -1}", "{memory: 8GB}", "{memory: [8Gi]}",
		"{diskBus: ide}", "{driver: vmware}", "{accelerator: fast}",
		"{image: {disk: a, iso: b}}", "{image: {sha256: "+strings.Repeat("aB", 32)+"}}",
		"{image: {disk: a, productKey: AAAAA-BBBBB-CCCCC-DDDDD-EEEE5}}", "{image: {iso: 'https://h/a.iso'}}",
		"{network: {mode: nat}}", "{network: {mode: bridge, bridge: 'br0,id=x'}}", "{network: {tap: a/b}}",
		"{network: {mode: bridge, bridge: b, address: x}}",
		"{network: {ports: [{name: 'a,b', guest: 1}]}}", "{network: {ports: [{guest: 1}]}}",
		"{network: {ports: [{name: rdp, host: 70000}]}}", "{timeZone: 'a,b'}", "{image: a}", "{firmware: {tpm: 'yes'}}")
	bad(vm, "{driver: libvirt}", "{driver: libvirt, domain: a/b}", "{driver: libvirt, domain: w, cpus: 2}",
		"{domain: w}", "{driver: libvirt, domain: w, uri: 'qemu+ssh://h/system'}", "{driver: hyperv, diskBus: sata}")
	for _, body := range []string{"{driver: hyperv, network: {mode: user}}",
		"{driver: libvirt, domain: w, image: {disk: a}}", "{memory: 8}", "{disk: 1e9}", "{disk: 1Ki}",
		"{network: {mode: bridge}}",
		"{network: {mode: tap}}", "{network: {bridge: b}}", "{network: {ports: [{name: web}]}}",
		"{network: {address: 1.2.3.4}}", "{network: {ports: [{name: rdp}, {name: rdp}]}}",
		"{network: {ports: [{name: ssh, guest: 23}]}}"} {
		cases[body] = schemaCase{text: vm + body + "\n", beyondSchema: true}
	}

	good(head, "  setup:", "  setup: {enableRDP: false}", "  setup: {chocoPackages: [vim, vim-x@1.0]}",
		"  setup: {hosts: [{address: '::1', names: [a]}]}",
		"  setup: {environment: {A: 1, B: true, C: }}", "  setup: {path: ['c:\\k', '%SystemRoot%\\x']}",
		"  setup: {firewall: [{name: a, ports: 80}, {name: b, direction: out, action: block, protocol: udp, ports: "+
			"'1-2,5', profiles: 'domain,private', addresses: LocalSubnet}]}",
		"  setup: {openSSH: {authorizedKeys: [a.pub]}}", "  setup: {firewall: [{name: a, direction: }]}")
	bad(head, "  setup: {enableRDP: 'yes'}", "  setup: {enableRDP: 1}", "  setup: {chocoPackages: vim}",
		"  setup: {chocoPackages: ['a b']}", "  setup: {chocoPackages: [a@]}",
		"  setup: {features: ['a;b']}", "  setup: {hosts: [{address: x, names: [a]}]}",
		"  setup: {hosts: [{address: 1.2.3.4}]}", "  setup: {environment: {Path: x}}",
		"  setup: {environment: {a=b: x}}", "  setup: {path: [k]}", "  setup: {path: ['c:\\a;c:\\b']}",
		"  setup: {firewall: [{name: a, direction: inbound}]}",
		"  setup: {firewall: [{name: a, ports: http}]}", "  setup: {firewall: [{name: a, profiles: home}]}",
		"  setup: {firewall: [{ports: 1}]}",
		"  setup: {openSSH: {authorizedKeys: ['']}}", "  setup: {enableRdp: true}", "  setup: {chocoPackages: [null]}")

	item := head + provisioner
	good(item, "        destination: c:\\k\\kubelet.exe",
		"        destination: C:/Program Files//x/nulls.exe\n        overwrite: false",
		"        destination: c:\\a.exe\n        version: 1.29\n        sha256: "+strings.Repeat("aB", 32)+
			"\n        args: [-v, 4]\n        dependsOn: [a b]",
		"        destination: c:\\a.exe\n        health: {httpGet: 'http://127.0.0.1/x', settle: 0s, timeout: 1m30s}",
		"        destination: c:\\a.exe\n        health: {criPipe: 'npipe:////./pipe/x'}",
		"        destination: c:\\a.exe\n        health: {none: true}")
	bad(item, "        overwrite: true", "        destination: k.exe", "        destination: \\\\host\\share\\k.exe",
		"        destination: \\\\.\\c:\\k.exe", "        destination: c:k.exe",
		"        destination: c:\\k\\..\\k.exe", "        destination: c:\\k\\nul.exe",
		"        destination: c:\\COM1\\k.exe", "        destination: c:\\k\\", "        destination: c:\\k\\a.exe:b",
		"        destination: c:\\k.\\a.exe", "        destination: 'c:\\k\\a.exe '",
		"        destination: c:\\k\\a?.exe", "        destination: \"c:\\new\\\\a.exe\"", "        destination: 5",
		"        destination: c:\\a.exe\n        sha256: abc", "        destination: c:\\a.exe\n        version: [1]",
		"        destination: c:\\a.exe\n        overwrite: 'true'",
		"        destination: c:\\a.exe\n        dependsOn: ['a/b']",
		"        destination: c:\\a.exe\n        health: {settle: 5}",
		"        destination: c:\\a.exe\n        health: {settle: 5 s}",
		"        destination: c:\\a.exe\n        health: {httpGet: 'tcp://x'}",
		"        destination: c:\\a.exe\n        health: {criPipe: 'c:\\pipe'}")
	build := item + "        destination: c:\\k.exe\n        build: "
	good(build, "{command: make}", "{command: [make, -j, 2]}",
		"\n          command: |\n            cd x\n            make",
		"{dir: ~/src, command: make, env: {A: 1}, watch: ['**/*.go', '!x/**', 'a?.c']}", "")
	bad(build, "{}", "{command: }", "{command: []}", "{command: ' '}", "{command: {a: b}}", "make",
		"{command: make, watch: ['/a']}", "{command: make, watch: ['a\\b']}",
		"{command: make, watch: ['[a]']}", "{command: make, watch: a.go}", "{command: make, environment: {}}")
	source := head +
		"  kubernetes:\n    provisioners:\n      - name: kubelet\n        destination: c:\\k.exe\n        sourceURL: "
	good(source, "k.exe", "./a/k.exe", "/a/k.exe", "~/k.exe", "$OUT/k.exe", "$BASE://x/k.exe", "http://h/k.exe",
		"HTTPS://h/k.exe", "oci://h/team/node:v1", "oci+http://h:5000/node", "OCI://$REGISTRY/node:$TAG", "file:///a/k.exe", "C:\\a\\k.exe", "C:/a/k.exe")
	bad(source, "ftp://h/k.exe", "http:///k.exe", "https://", "oci://h", "oci:///n", "''", "", "[a]")
	return cases
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("node.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("node.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
