package main

import "github.com/swdt-dev/swdt/api/v1alpha1"

// rules returns the parts of the schema that do not follow from the types. The keys name a
// type, or a type and a field. Both Go's regexp and JavaScript's must understand the
// patterns.
func rules() map[string]object {
	const (
		host    = `^[^\s@/]*$`
		release = `^(v?[0-9]+\.[0-9]+\.[0-9]+([-+][A-Za-z0-9.+-]+)?)?$`
		device  = `^([A-Za-z0-9_][A-Za-z0-9_.-]{0,14})?$`
		service = `^[^/\\:"\s]([^/\\:"]*[^/\\:"\s])?$`
	)
	return map[string]object{
		"Node.apiVersion": {"type": "string", "enum": []any{v1alpha1.APIVersion}},
		"Node.kind":       {"type": "string", "enum": []any{v1alpha1.Kind}},
		"Metadata.name":   {"pattern": `^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`},

		"NodeSpec": {"anyOf": []any{ // only a VM needs no hostname, since swdt fills it in
			object{"required": []string{"machine"}, "properties": object{"machine": object{"type": "object"}}},
			object{"required": []string{"credentials"}, "properties": object{"credentials": set("hostname")}},
			object{"required": []string{"credentials"}, "properties": object{"credentials": object{
				"required": []string{"kubernetes"}, "properties": object{"kubernetes": object{"type": "object"}}}}},
		}},
		"Credentials": {"not": object{"anyOf": []any{
			object{"allOf": []any{set("privateKey"), set("password")}},
			object{"allOf": []any{set("privateKey"), set("passwordFrom")}},
			object{"allOf": []any{set("password"), set("passwordFrom")}},
			object{"required": []string{"kubernetes"}, "properties": object{"kubernetes": object{"type": "object"}},
				"anyOf": []any{set("username"), set("hostname"), set("privateKey"), set("password"),
					set("passwordFrom"), set("passphraseFrom"), set("hostKey"), set("proxyJump")}},
		}}},
		"ThroughKubernetes.node":      {"pattern": `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`},
		"ThroughKubernetes.namespace": {"pattern": `^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`},
		"ThroughKubernetes.image":     {"type": "string", "pattern": `^\S*$`},
		"Credentials.hostname":        {"pattern": host},
		"Credentials.hostKey":         {"type": "string", "pattern": `^(SHA256:[A-Za-z0-9+/]{43})?$`},
		"Credentials.proxyJump":       {"type": "string", "pattern": `^[^\s/]*$`},
		"SecretSource":                {"oneOf": []any{set("env"), set("file"), object{"type": "null"}}},
		"SecretSource.env":            {"type": "string", "pattern": `^([A-Za-z_][A-Za-z0-9_]*)?$`},

		"Machine": {"allOf": []any{
			object{"if": driver("hyperv"), // a virtual switch of Hyper-V may have any name
				"then": object{"not": object{"anyOf": []any{set("diskBus"), set("accelerator"), set("domain"), set("uri")}}},
				"else": object{"properties": object{"network": object{"properties": object{"bridge": object{"pattern": device}}}}}},
			object{"if": driver("libvirt"), // driver libvirt adopts a domain without changing it
				"then": object{"required": []string{"domain"}, "not": object{"anyOf": []any{
					set("cpus"), set("memory"), set("disk"), set("diskBus"), set("accelerator"), set("timeZone"),
				}}},
				"else": object{"not": object{"anyOf": []any{set("domain"), set("uri")}}}},
		}},
		"Machine.driver":      choice(v1alpha1.MachineDrivers()...),
		"Machine.domain":      {"pattern": `^[^/]*$`},
		"Machine.uri":         {"pattern": `^((qemu|test):///[^#]*)?$`},
		"Machine.cpus":        {"minimum": 0, "maximum": 512},
		"Machine.diskBus":     choice("sata", "virtio"),
		"MachineDisplay.vnc":  choice("unix", "port", "none"),
		"Machine.accelerator": choice("auto", "kvm", "hvf", "whpx", "tcg"),
		"Machine.timeZone":    {"type": "string", "pattern": `^([A-Za-z0-9][A-Za-z0-9 ()+./_-]*)?$`},
		"MachineImage": {"not": object{"anyOf": []any{
			object{"allOf": []any{set("disk"), set("iso")}},
			without("iso", "sha256"), without("iso", "edition"), without("iso", "openSSH"),
			without("iso", "productKey"),
		}}},
		"MachineImage.disk":       {"type": "string", "not": object{"pattern": `://`}},
		"MachineImage.iso":        {"type": "string", "not": object{"pattern": `://`}},
		"MachineImage.drivers":    {"type": "string", "not": object{"pattern": `://`}},
		"MachineImage.openSSH":    {"type": "string", "not": object{"pattern": `://`}},
		"MachineImage.sha256":     {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
		"MachineImage.productKey": {"type": "string", "pattern": `^([A-Za-z0-9]{5}(-[A-Za-z0-9]{5}){4})?$`},
		"MachineNetwork.mode":     choice("user", "bridge", "tap"),
		"MachineNetwork.adapter":  choice("e1000e", "virtio"),
		"MachineNetwork.tap":      {"pattern": device},
		"MachineNetwork.address":  {"type": "string", "pattern": `^(auto|[0-9A-Fa-f:.]*)$`},
		"MachineNetwork.ports":    {"maxItems": 32},
		"MachinePort.name": {"type": []string{"string", "number"},
			"pattern": `^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`},
		"MachinePort.guest": {"minimum": 0, "maximum": 65535},
		"MachinePort.host":  {"minimum": 0, "maximum": 65535},

		"Setup.chocoPackages": {"items": object{"pattern": `^[A-Za-z0-9][A-Za-z0-9._+-]*(@[A-Za-z0-9][A-Za-z0-9._+-]*)?$`}},
		"Setup.features":      {"items": object{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9._-]*$`}},
		"Setup.environment": {"propertyNames": object{"pattern": `^[^=]+$`,
			"not": object{"pattern": `^[pP][aA][tT][hH]$`}}},
		"Setup.path":         {"items": object{"type": "string", "pattern": `^([A-Za-z]:[\\/]|%[^%]+%)[^;<>:"|?*]*$`}},
		"HostsEntry.address": {"type": "string", "pattern": `^[0-9A-Fa-f:.]+(%.+)?$`},
		"HostsEntry.names":   {"minItems": 1},
		"RegistryValue":      {"oneOf": []any{object{"required": []string{"dword"}}, object{"required": []string{"string"}}}},
		"RegistryValue.key":  {"pattern": `^[Hh][Kk][Ll][Mm]\\[^\\]+(\\[^\\]+)+$`},

		"FirewallRule.name":      {"pattern": `^[^"|]+$`},
		"FirewallRule.direction": choice("in", "out"),
		"FirewallRule.action":    choice("allow", "block"),
		"FirewallRule.protocol":  choice("tcp", "udp", "icmpv4", "icmpv6", "any"),
		"FirewallRule.ports":     {"type": []string{"string", "number"}, "pattern": `^(any|[0-9, -]*)$`},
		"FirewallRule.profiles": {"type": "string",
			"pattern": `^(any|( *(domain|private|public) *,)* *(domain|private|public) *)?$`},
		"FirewallRule.addresses": {"type": "string"},
		"OpenSSH.authorizedKeys": {"items": object{"type": "string", "minLength": 1}},

		"Kubernetes.version":  {"pattern": release},
		"Containerd.version":  {"pattern": release},
		"Containerd.sha256":   {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
		"Containerd.config":   {"type": "string"},
		"Containerd.logLevel": choice("trace", "debug", "info", "warn", "error", "fatal", "panic"),
		"Kubelet.extraArgs":   {"propertyNames": object{"pattern": `^[A-Za-z0-9][A-Za-z0-9.-]*$`}},
		"Kubelet.registerWithTaints": {"items": object{"type": "string",
			"pattern": `:(NoSchedule|PreferNoSchedule|NoExecute)$`}},
		"Join.nodeName":                 {"pattern": `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`},
		"Join.controlPlaneEndpoint":     {"pattern": `^[^\s@/]*$`},
		"Join.token":                    {"type": "string", "pattern": `^([a-z0-9]{6}\.[a-z0-9]{16})?$`},
		"Join.discoveryTokenCACertHash": {"type": "string", "pattern": `^(sha256:[0-9a-f]{64})?$`},

		"Provisioner.name":    {"pattern": service},
		"Provisioner.version": {"pattern": `^([A-Za-z0-9][A-Za-z0-9._+-]*)?$`},
		"Provisioner.sourceURL": {"minLength": 1,
			"pattern": `^(\$|[hH][tT][tT][pP][sS]?://[^/]|` +
				`[fF][iI][lL][eE]://.|[oO][cC][iI](\+[hH][tT][tT][pP])?://[^/]+/.|([^:]|:([^/]|/[^/]|/?$))*$)`},
		"Provisioner.sha256":      {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
		"Provisioner.destination": destination(),
		"Provisioner.dependsOn":   {"items": object{"pattern": service}},
		"Build.watch":             {"items": object{"type": "string", "pattern": `^!?[^/!\\:\[\]][^\\:\[\]]*$`}},
		"Health.httpGet":          {"type": "string", "pattern": `^(https?://[^/].*)?$`},
		"Health.criPipe": {"type": "string",
			"pattern": `^((npipe://)?[\\/]{2}\.[\\/]pipe[\\/][^\\/:"<>|?*]+)?$`},
	}
}

// set matches an object whose property exists and is not empty.
func set(property string) object {
	return object{
		"type":       "object",
		"required":   []string{property},
		"properties": object{property: object{"not": object{"enum": []any{nil, ""}}}},
	}
}

// without matches an object that has property, but lacks the property needed by it.
func without(needed, property string) object {
	return object{"allOf": []any{set(property), object{"not": set(needed)}}}
}

// driver matches a Machine whose driver has this name.
func driver(name string) object {
	return object{"required": []string{"driver"}, "properties": object{"driver": object{"const": name}}}
}

func choice(words ...string) object {
	enum := []any{""}
	for _, word := range words {
		enum = append(enum, word)
	}
	return object{"type": "string", "enum": enum}
}

// destination matches the paths of files that v1alpha1.CleanWindowsPath accepts, as far as
// patterns can express that.
func destination() object {
	return object{
		"type":      "string",
		"maxLength": 240,
		"pattern":   `^[A-Za-z]:[\\/][^<>:"|?*]*[^<>:"|?*\\/. ]$`,
		"not": object{"anyOf": []any{
			object{"pattern": `[\x00-\x1f\x7f]`},
			object{"pattern": `[. ][\\/]`}, // also matches the components . and ..
			object{"pattern": `[\\/]([cC][oO][nN]|[pP][rR][nN]|[aA][uU][xX]|[nN][uU][lL]|` +
				`[cC][oO][mM][0-9¹²³]|[lL][pP][tT][0-9¹²³]|` +
				`[cC][oO][nN][iI][nN]\$|[cC][oO][nN][oO][uU][tT]\$|[cC][lL][oO][cC][kK]\$) *([.\\/]|$)`},
		}},
	}
}
