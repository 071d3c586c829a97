package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// apiRules repeat what Kubernetes' validation refuses of pods for Windows.
func apiRules() []Rule {
	return []Rule{
		{
			ID: ruleForm, Severity: finding.Error, Effect: Rejected,
			Title:  "values are of the types that the API server reads",
			Means:  "the API server rejects the object, such as a command that is a text and not a list. swdt does not look at its pods.",
			Remedy: "correct the value", Source: "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/", object: form,
			Bad: "  command: web.exe", Good: "  command: [web.exe]",
		},
		{
			ID: "sec-linux-field", Severity: finding.Error, Effect: Rejected, fix: removal(),
			Title: "Windows pods have no fields that are for Linux alone",
			Means: "with spec.os.name windows, the API server rejects each of 25 fields if it is set: hostPID and hostIPC if they are true, " +
				"sysctls of the pods if they are not empty, and the others with any value, also false. " +
				"Without spec.os.name, it accepts them, and Windows ignores them.",
			Remedy: "remove the field", Source: validationAt, windows: linuxFields,
			Bad: "  securityContext: {privileged: false}", Good: "  securityContext: {runAsNonRoot: true}",
		},
		{
			ID: "place-linux-has-windows", Severity: finding.Error, Effect: Rejected,
			Title:  "Linux pods have no windowsOptions and no Windows image",
			Means:  "with spec.os.name linux, the API server rejects windowsOptions. A Linux node cannot run a Windows image.",
			Remedy: "remove windowsOptions, or place the pods on Windows nodes", Source: validationAt, pods: linuxPods,
			Bad:  "os: {name: linux}\nnodeSelector: {kubernetes.io/os: linux}\nsecurityContext: {windowsOptions: {runAsUserName: web}}",
			Good: "securityContext: {windowsOptions: {runAsUserName: web}}",
		},
		{
			ID: "windows-options", Severity: finding.Error, Effect: Rejected,
			Title:  "names in windowsOptions are valid",
			Means:  "the API server rejects the pods: runAsUserName is USER or DOMAIN\\USER, gmsaCredentialSpecName is a DNS name, gmsaCredentialSpec has 1 byte to 64 KiB.",
			Remedy: "correct the name", Source: validationAt, pods: windowsOptions,
			Bad:  `securityContext: {windowsOptions: {runAsUserName: 'A\B\C'}}`,
			Good: `securityContext: {windowsOptions: {runAsUserName: 'ContainerUser'}}`,
		},
		{
			ID: "hpc-hostnetwork", whole: true, Severity: finding.Error, Effect: Rejected, fix: &fix{value: true},
			Title:  "HostProcess pods have hostNetwork: true",
			Means:  "the API server rejects the pods. They use the node's network in any case.",
			Remedy: "write hostNetwork: true", Source: validationAt, pods: hostNetworkOfHostProcess,
			Bad: `securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}`, Good: hostProcessExample,
		},
		{
			ID: "hpc-mixed", whole: true, Severity: finding.Error, Effect: Rejected,
			Title:  "all containers of a pod are HostProcess containers, or none is",
			Means:  "the API server rejects the pods. Init containers and ephemeral containers count.",
			Remedy: "write hostProcess: true in the securityContext of the pods, and in no container", Source: validationAt, pods: mixedHostProcess,
			Bad:  hostProcessExample + "\ncontainers:\n- {name: a, image: 'a:1', securityContext: {windowsOptions: {hostProcess: false}}}",
			Good: hostProcessExample,
		},
		{
			ID: "res-pod-level", Severity: finding.Error, Effect: Rejected, Since: "1.34",
			Title:  "resources are those of containers",
			Means:  "the API server rejects spec.resources with spec.os.name windows, and kubelet refuses such pods otherwise.",
			Remedy: "write resources in each container", Source: validationAt, windows: podResources,
			Bad: "resources: {limits: {memory: 1Gi}}", Good: "  ports: [{containerPort: 80}]",
		},
	}
}

const ruleForm = "api-form"

func form(o *object, _ *manifests, found report) {
	var wrong *json.UnmarshalTypeError
	if errors.As(o.wrong, &wrong) {
		found(seen{at: o.mistyped(wrong), what: fmt.Sprintf("the API server cannot read the value: it is a %s, and a %s is expected", firstWord(wrong.Value), kindOf(wrong.Type))})
	} else if o.wrong != nil {
		found(seen{what: fmt.Sprintf("the API server cannot read the object: %v", o.wrong)})
	}
}

// kindOf returns the word of JSON for a type of Go.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Map, reflect.Struct:
		return "mapping"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "text"
	}
	return "number"
}

// firstWord returns the word for a value of JSON: "number 5" is a number.
func firstWord(value string) string {
	word, _, _ := strings.Cut(value, " ")
	switch word {
	case "string":
		return "text"
	case "array":
		return "list"
	case "object":
		return "mapping"
	case "bool":
		return "boolean"
	}
	return word
}

// hostProcessExample are the fields that a HostProcess pod needs.
const hostProcessExample = `hostNetwork: true
securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}`

// linuxField is a field that Windows does not have.
type linuxField struct {
	path    path   // below the PodSpec, or below a container
	without string // what Windows does with it if spec.os.name does not name Windows
}

// podFields returns the fields of a PodSpec. validateWindows in Kubernetes' validation.go has the list.
func podFields() []linuxField {
	const ignored, none = "Windows ignores it", "there is no such namespace on Windows"
	sc := func(name, without string) linuxField { return linuxField{path{"securityContext", name}, without} }
	return []linuxField{
		{path{"hostPID"}, none}, {path{"hostIPC"}, none}, {path{"hostUsers"}, none}, {path{"shareProcessNamespace"}, none},
		sc("seLinuxOptions", ignored), sc("seLinuxChangePolicy", ignored), sc("seccompProfile", ignored), sc("appArmorProfile", ignored),
		sc("fsGroup", "Windows ignores it: access lists of the volume's files stay"), sc("fsGroupChangePolicy", ignored),
		sc("sysctls", ignored), sc("runAsUser", "Windows ignores it, and runs the image's user"), sc("runAsGroup", ignored),
		sc("supplementalGroups", ignored), sc("supplementalGroupsPolicy", ignored),
	}
}

// containerFields returns the fields of a container.
func containerFields() []linuxField {
	const ignored = "Windows ignores it"
	sc := func(name, without string) linuxField { return linuxField{path{"securityContext", name}, without} }
	return []linuxField{
		sc("seLinuxOptions", ignored), sc("seccompProfile", ignored), sc("appArmorProfile", ignored), sc("capabilities", ignored),
		sc("readOnlyRootFilesystem", "containerd ignores it on Windows: the container can write"),
		sc("privileged", "Windows ignores it: the container has no more rights"), sc("allowPrivilegeEscalation", ignored),
		sc("procMount", ignored), sc("runAsUser", "Windows ignores it, and runs the image's user"), sc("runAsGroup", ignored),
	}
}

func linuxFields(p *pods, found report) {
	for _, f := range podFields() {
		value := p.has(f.path...)
		if value == nil || (f.path[0] == "hostPID" || f.path[0] == "hostIPC") && !isTrue(plain(value)) ||
			f.path[len(f.path)-1] == "sysctls" && len(value.Content) == 0 {
			continue
		}
		linuxFieldAt(p, p.at(f.path...), f, found)
	}
	for _, c := range p.containers() {
		for _, f := range containerFields() {
			if at := c.path.child(f.path...); p.object.at(at) != nil {
				linuxFieldAt(p, at, f, found)
			}
		}
	}
}

func isTrue(value any) bool { yes, ok := value.(bool); return ok && yes }

func linuxFieldAt(p *pods, at path, f linuxField, found report) {
	name := f.path[len(f.path)-1]
	if p.namesWindows() {
		found(seen{at: at, what: fmt.Sprintf("the API server rejects %s", rejectedValue(name))})
		return
	}
	s := seen{at: at, what: fmt.Sprintf("%s: %s", name, f.without), severity: finding.Warning, effect: Ignored}
	value := plain(p.object.at(at))
	switch {
	case isRestriction(name, value):
		s.severity, s.byHand = finding.Info, true
	case name == "privileged":
		s.remedy = "remove the field; a HostProcess container has the rights of the node"
	}
	found(s)
}

// rejectedValue returns a field with the values that the API server rejects.
func rejectedValue(name string) string {
	switch name {
	case "hostPID", "hostIPC":
		return name + ": true of a Windows pod"
	case "sysctls":
		return name + " of a Windows pod, unless they are empty"
	}
	return name + " of a Windows pod, whatever its value"
}

// isRestriction reports whether a field takes rights away, or asks for the default: no author relies on it where it has no
// effect, and the Pod Security standard restricted demands some of these without spec.os.name.
func isRestriction(name string, value any) bool {
	switch name {
	case "capabilities":
		lists, _ := value.(map[string]any)
		added, _ := lists["add"].([]any)
		return len(added) == 0
	case "privileged", "readOnlyRootFilesystem", "shareProcessNamespace":
		return !isTrue(value)
	case "hostPID", "hostIPC", "fsGroup", "sysctls", "runAsUser", "runAsGroup", "supplementalGroups":
		return false
	}
	return true
}

// namesWindows reports whether spec.os.name is windows.
func (p *pods) namesWindows() bool { return p.spec.OS != nil && p.spec.OS.Name == corev1.Windows }

func linuxPods(p *pods, found report) {
	if p.spec.OS != nil && p.spec.OS.Name == corev1.Linux {
		places := []path{p.path}
		for _, c := range p.containers() {
			places = append(places, c.path)
		}
		for _, at := range places {
			if at = at.child("securityContext", "windowsOptions"); p.object.at(at) != nil {
				found(seen{at: at, what: "the API server rejects windowsOptions of a pod whose spec.os.name is linux"})
			}
		}
	}
	if p.system.name != corev1.Linux || !p.system.placed {
		return
	}
	for _, c := range p.containers() {
		if isWindowsImage(c.Image) {
			found(seen{at: c.path.child("image"), what: "the pods run on Linux nodes, and the image is for Windows", effect: Fails,
				remedy: "place the pods on Windows nodes, or choose an image for Linux"})
		}
	}
}

func windowsOptions(p *pods, found report) {
	places := []struct {
		at      path
		options *corev1.WindowsSecurityContextOptions
	}{{p.path, p.options()}}
	for _, c := range p.containers() {
		places = append(places, struct {
			at      path
			options *corev1.WindowsSecurityContextOptions
		}{c.path, c.options()})
	}
	for _, place := range places {
		at := place.at.child("securityContext", "windowsOptions")
		if name := place.options.GMSACredentialSpecName; name != nil {
			for _, why := range validation.IsDNS1123Subdomain(*name) {
				found(seen{at: at.child("gmsaCredentialSpecName"), what: "the API server rejects the name: " + why})
			}
		}
		if spec := place.options.GMSACredentialSpec; spec != nil && (len(*spec) == 0 || len(*spec) > 64<<10) {
			found(seen{at: at.child("gmsaCredentialSpec"), what: fmt.Sprintf("the API server rejects a text of %d bytes: it must have 1 to %d", len(*spec), 64<<10)})
		}
		if user := place.options.RunAsUserName; user != nil {
			for _, why := range wrongUser(*user) {
				found(seen{at: at.child("runAsUserName"), what: "the API server rejects the user: " + why})
			}
		}
	}
}

// wrongUser returns why the API server rejects a name of a Windows user. The lengths are in bytes.
func wrongUser(name string) (all []string) {
	if name == "" {
		return []string{"it is empty"}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return []string{"it has control characters"}
	}
	domain, user, qualified := strings.Cut(name, `\`)
	if strings.Contains(user, `\`) {
		return []string{"it has more than one backslash"}
	}
	if !qualified {
		domain, user = "", name
	}
	if len(domain) >= 256 {
		all = append(all, "its domain has more than 255 bytes")
	}
	if qualified && !isDomain(domain) {
		all = append(all, "its domain is no NetBIOS name and no DNS name")
	}
	switch {
	case user == "":
		all = append(all, "it has no user after the backslash")
	case len(user) > 104:
		all = append(all, "its user has more than 104 bytes")
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		all = append(all, "its user has dots and spaces alone")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		all = append(all, `its user has one of "/\:;|=,+*?<>@[]`)
	}
	return all
}

// isDomain reports whether a name is a NetBIOS name of 1 to 15 characters, or one of DNS in which no part is longer than
// 63.
func isDomain(name string) bool {
	if runes := []rune(name); len(runes) >= 1 && len(runes) <= 15 && runes[0] != '.' && !strings.ContainsAny(name, `\/:*?"<>|`) {
		return true
	}
	part := regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	for label := range strings.SplitSeq(name, ".") {
		if !part.MatchString(label) {
			return false
		}
	}
	return true
}

func hostNetworkOfHostProcess(p *pods, found report) {
	if p.isHostProcess() && !p.spec.HostNetwork {
		found(seen{at: p.at("hostNetwork"), what: "the API server rejects HostProcess pods without hostNetwork: true"})
	}
}

func mixedHostProcess(p *pods, found report) {
	count, all := 0, p.containers()
	for _, c := range all {
		if p.hostProcess(c) {
			count++
		}
		if ofPod, own := p.options().HostProcess, c.options().HostProcess; ofPod != nil && own != nil && *ofPod != *own {
			found(seen{at: c.path.child("securityContext", "windowsOptions", "hostProcess"),
				what: fmt.Sprintf("the API server rejects a container whose hostProcess differs from that of the pods, %t", *ofPod)})
		}
	}
	if count > 0 && count < len(all) {
		found(seen{at: p.path, what: fmt.Sprintf("the API server rejects pods in which %d of %d containers are HostProcess containers", count, len(all))})
	}
}

func podResources(p *pods, found report) {
	if p.has("resources") == nil {
		return
	}
	if p.namesWindows() {
		found(seen{at: p.at("resources"), what: "the API server rejects resources of a Windows pod as a whole"})
		return
	}
	found(seen{at: p.at("resources"), what: "kubelet refuses pods with resources of the pod as a whole on Windows", effect: Fails})
}

// texts of a mapping at a path.
func (o *object) texts(p path) map[string]string { return documents.Texts(o.at(p)) }
