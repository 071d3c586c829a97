// Package trust records which node files you let swdt find by itself. swdt takes a node file that you name as your
// word. One that lies in the working folder may be a stranger's: it chooses hosts, secrets, images and programs, and
// swdt would act for it with your rights. So it counts only after you have agreed to what it claims.
package trust

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// Claim is one thing that a node file uses with your rights: a host that swdt contacts, an account, the place of a
// secret, a program of your machine, an image.
type Claim struct {
	Document string `json:"document"` // such as "node win-1"
	Field    string `json:"field"`    // without spec, such as "credentials.hostname"
	Value    string `json:"value"`    // as in the file, but never a secret
}

func (c Claim) String() string { return fmt.Sprintf("%s of %s is %s", c.Field, c.Document, c.Value) }

// harmless lists the fields that claim nothing, with all fields below them: they say what a node shall be like, and
// what swdt would change there is in its plan. A field that is not listed, such as a new one, is a claim. In a
// harmless field, the host and the variables of a URL are claims.
func harmless() []string {
	return []string{
		"metadata",
		"spec.kubernetes.version", "spec.kubernetes.kubelet",
		"spec.kubernetes.containerd.version", "spec.kubernetes.containerd.source", "spec.kubernetes.containerd.sha256",
		"spec.kubernetes.containerd.config", "spec.kubernetes.containerd.cni", "spec.kubernetes.containerd.logFile",
		"spec.kubernetes.containerd.logLevel", "spec.kubernetes.containerd.crictlVersion",
		"spec.kubernetes.join.nodeName", "spec.kubernetes.join.nodeIP", "spec.kubernetes.join.ignorePreflightErrors",
		"spec.kubernetes.provisioners.name", "spec.kubernetes.provisioners.version",
		"spec.kubernetes.provisioners.sourceURL", "spec.kubernetes.provisioners.sha256",
		"spec.kubernetes.provisioners.destination", "spec.kubernetes.provisioners.overwrite",
		"spec.kubernetes.provisioners.service", "spec.kubernetes.provisioners.dependsOn", "spec.kubernetes.provisioners.build.watch",
		"spec.machine.image", "spec.machine.cpus", "spec.machine.memory", "spec.machine.disk", "spec.machine.diskBus",
		"spec.machine.firmware", "spec.machine.accelerator", "spec.machine.timeZone",
		"spec.controlPlane.kind.workers", "spec.controlPlane.kind.runtime", "spec.controlPlane.kind.apiServerNames",
		"spec.network",
	}
}

// onNode lists fields that claim nothing either. Their URLs are for the node itself: swdt does not open them.
func onNode() []string {
	return []string{
		"spec.setup.enableRDP", "spec.setup.chocoPackages", "spec.setup.features", "spec.setup.hosts",
		"spec.setup.environment", "spec.setup.path", "spec.setup.firewall",
		"spec.setup.registry", "spec.setup.automaticUpdates", "spec.setup.defender",
		"spec.kubernetes.kubelet.extraArgs", "spec.kubernetes.kubelet.configPatch",
		"spec.kubernetes.kubelet.registerWithTaints", "spec.kubernetes.kubelet.nodeLabels",
		"spec.kubernetes.provisioners.args", "spec.kubernetes.provisioners.health",
	}
}

// secret lists the fields that are a secret themselves.
func secret() []string { return []string{"spec.credentials.password", "spec.kubernetes.join.token"} }

// kubeconfigs lists the fields that name a kubeconfig, whose content counts.
func kubeconfigs() []string {
	return []string{"spec.credentials.kubernetes.kubeconfig", "spec.controlPlane.existing.kubeconfig"}
}

// Claims returns what documents claim, in the order of their fields. It opens the kubeconfigs that they name, and
// contacts nothing. If another account can change such a kubeconfig, or a program beside it, the error is a
// *localfile.ForeignError. A file that is there and cannot be read whole is an error too: its bytes could change
// unseen.
func Claims(nodes []config.Document, clusters []config.ClusterDocument) ([]Claim, error) {
	var c collector
	for _, d := range nodes {
		c.document, c.resolve = "node "+d.Node.Metadata.Name, d.Resolve
		c.walk(reflect.ValueOf(d.Node), "", "")
	}
	for _, d := range clusters {
		c.document, c.resolve = "cluster "+d.Cluster.Metadata.Name, d.Resolve
		c.walk(reflect.ValueOf(d.Cluster), "", "")
	}
	return c.claims, c.unreadable
}

// Beside names the kubeconfig of a node that lies in the folder of its node file, and the programs that it runs. It
// is empty if the node has none.
func Beside(d config.Document) string {
	way := d.Node.Spec.Credentials.Kubernetes
	if way == nil || way.Kubeconfig == "" || filepath.IsAbs(way.Kubeconfig) || strings.HasPrefix(way.Kubeconfig, "~") {
		return ""
	}
	text := "the kubeconfig " + way.Kubeconfig + " is that of the node file"
	data, err := read(d.Resolve(way.Kubeconfig))
	if err != nil {
		return text
	}
	for _, user := range parseKubeconfig(data).Users {
		if program := user.User.Exec.Command; program != "" {
			text += ", and runs " + program
		}
	}
	return text
}

type collector struct {
	document   string
	resolve    func(path string) string
	claims     []Claim
	unreadable error // of the first file whose bytes cannot be trusted
}

// walk visits a value. kind is the path of its field as the lists above write it, and field as a claim names it.
func (c *collector) walk(v reflect.Value, kind, field string) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch {
	case v.IsZero(), kind == "apiVersion", kind == "kind":
	case v.Kind() == reflect.Struct && hasFields(v.Type()):
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			c.walk(v.Field(i), join(kind, name), join(field, name))
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			c.walk(v.Index(i), kind, field+nameOf(v.Index(i), i))
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			c.walk(v.MapIndex(key), kind, join(field, key.String()))
		}
	default:
		c.leaf(fmt.Sprint(v.Interface()), kind, field)
	}
}

// hasFields reports whether the fields of a struct are those of the node file. Those of a duration are not.
func hasFields(t reflect.Type) bool {
	return t.NumField() > 0 && t.Field(0).Tag.Get("yaml") != ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// nameOf returns the index of a list's element, as its name if it has one.
func nameOf(element reflect.Value, index int) string {
	if element.Kind() == reflect.Struct {
		if name := element.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && name.String() != "" {
			return "[" + name.String() + "]"
		}
	}
	return fmt.Sprintf("[%d]", index)
}

func (c *collector) leaf(value, kind, field string) {
	switch {
	case isIn(kind, onNode()):
	case isIn(kind, secret()):
		c.add(field, "in the file")
	case isIn(kind, harmless()):
		if place := contacted(value); place != "" {
			c.add(field, place)
		}
	default:
		c.add(field, value)
	}
	if slices.Contains(kubeconfigs(), kind) {
		c.kubeconfig(c.resolve(value), field)
	}
}

func (c *collector) add(field, value string) {
	c.claims = append(c.claims, Claim{c.document, strings.TrimPrefix(field, "spec."), value})
}

// isIn reports whether a list has a field, or one above it.
func isIn(kind string, list []string) bool {
	return slices.ContainsFunc(list, func(listed string) bool {
		rest, ok := strings.CutPrefix(kind, listed)
		return ok && (rest == "" || rest[0] == '.')
	})
}

// contacted returns the host and the variables of a URL, the host of a Windows share, and "" for another text.
func contacted(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	share := strings.ReplaceAll(text, `\`, "/")
	switch {
	case isURL:
		if strings.Contains(scheme, "$") {
			return text
		}
		host := rest[:strings.IndexAny(rest+"/", "/?#")]
		if account, address, ok := cutLast(host, "@"); ok {
			name, _, _ := strings.Cut(account, ":")
			host = name + "@" + address
		}
		return strings.Join(append([]string{"host " + host}, variables(text)...), ", ")
	case strings.HasPrefix(share, "//"):
		host, _, _ := strings.Cut(strings.TrimLeft(share, "/"), "/")
		return "host " + host
	}
	return ""
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return "", text, false
}

func variables(text string) (names []string) {
	for _, name := range config.Variables(text) {
		names = append(names, "$"+name)
	}
	return names
}

// mostOfFile bounds what is read of a kubeconfig, or of a program beside it, in bytes.
const mostOfFile = 256 << 20

// kubeconfig adds what a kubeconfig claims: its bytes, the API servers, and the programs and files of its users. A
// program that it names by a relative path lies beside it, so the bytes of that program count too.
func (c *collector) kubeconfig(path, field string) {
	file := parseKubeconfig(c.content(path, field+" content"))
	var contacts, runs, sends []string
	for _, cluster := range file.Clusters {
		contacts = append(contacts, cluster.Cluster.Server, cluster.Cluster.ProxyURL)
	}
	for _, user := range file.Users {
		sends = append(sends, user.User.TokenFile)
		program := user.User.Exec.Command
		runs = append(runs, program)
		if strings.ContainsAny(program, `/\`) && !filepath.IsAbs(program) {
			c.content(filepath.Join(filepath.Dir(path), program), field+" content of "+program)
		}
	}
	c.addAll(field+" contacts", contacts)
	c.addAll(field+" runs", runs)
	c.addAll(field+" sends", sends)
}

// addAll adds one claim for all values, if there are any.
func (c *collector) addAll(field string, values []string) {
	values = slices.DeleteFunc(values, func(value string) bool { return value == "" })
	if len(values) > 0 {
		c.add(field, strings.Join(values, ", "))
	}
}

// content adds the bytes of a file, by their hash, and returns them.
func (c *collector) content(path, field string) []byte {
	data, err := read(path)
	switch {
	case err == nil:
		c.add(field, fmt.Sprintf("sha256 %x", sha256.Sum256(data)))
	case errors.Is(err, fs.ErrNotExist):
		c.add(field, "not there")
	default:
		c.unreadable = cmp.Or(c.unreadable, err)
	}
	return data
}

func read(path string) ([]byte, error) {
	if err := localfile.CheckForeign(path); err != nil {
		return nil, err
	}
	file, _, err := localfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostOfFile+1))
	if err == nil && len(data) > mostOfFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, mostOfFile)
	}
	return data, err
}

// kubeconfig has the fields of a kubeconfig that lead to something else.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server   string `yaml:"server"`
			ProxyURL string `yaml:"proxy-url"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		User struct {
			TokenFile string `yaml:"tokenFile"`
			Exec      struct {
				Command string `yaml:"command"`
			} `yaml:"exec"`
		} `yaml:"user"`
	} `yaml:"users"`
}

// parseKubeconfig returns an empty kubeconfig if the text is none: nothing can use it.
func parseKubeconfig(text []byte) (file kubeconfig) {
	if yaml.Unmarshal(text, &file) != nil {
		return kubeconfig{}
	}
	return file
}
