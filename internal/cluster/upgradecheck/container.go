package upgradecheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

// pods reads the specification of pods.
func (w *walk) pods(spec *yaml.Node, path []string) {
	selectors := documents.Texts(documents.Child(spec, "nodeSelector"))
	system := documents.Text(spec, "os", "name")
	if system == "" {
		system = selectors[corev1.LabelOSStable]
	}
	linux := system == string(corev1.Linux)
	first := len(w.r.Settings)
	pods := Pods{Place: w.at(spec, path), Selectors: selectors, HostProcess: true, Spec: placing(spec, selectors)}
	for _, list := range []string{"initContainers", "containers"} {
		all := documents.Child(spec, list)
		if all == nil {
			continue
		}
		for i, container := range all.Content {
			at := append(slices.Clip(path), fmt.Sprintf("%s[%d]", list, i))
			if image := documents.Text(container, "image"); image != "" {
				pods.Images = append(pods.Images, image)
			}
			pods.HostProcess = pods.HostProcess && isHostProcess(spec, container)
			w.container(spec, container, at, linux)
		}
	}
	if system == string(corev1.Windows) || selectors[corev1.LabelWindowsBuild] != "" {
		w.r.Facts.Pods = append(w.r.Facts.Pods, pods)
		w.r.ofWindows(first)
	}
}

// isHostProcess reports whether a container runs as a process of the host. Its own value counts before that of the pod.
func isHostProcess(spec, container *yaml.Node) bool {
	field := []string{"securityContext", "windowsOptions", "hostProcess"}
	return cmp.Or(documents.Text(container, field...), documents.Text(spec, field...)) == "true"
}

// placing returns what decides which nodes take the pods. It leaves out a field that the API server would reject.
func placing(spec *yaml.Node, selectors map[string]string) corev1.PodSpec {
	p := corev1.PodSpec{NodeSelector: selectors, NodeName: documents.Text(spec, "nodeName")}
	decode(documents.Child(spec, "affinity"), &p.Affinity)
	decode(documents.Child(spec, "tolerations"), &p.Tolerations)
	return p
}

// decode decodes a part of an object, if it has the form of the type.
func decode[T any](n *yaml.Node, to *T) {
	var plain any
	if n == nil || n.Decode(&plain) != nil {
		return
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return
	}
	var value T
	if json.Unmarshal(text, &value) == nil {
		*to = value
	}
}

// container reads the command and the image of a container.
func (w *walk) container(spec, container *yaml.Node, path []string, linux bool) {
	var args []string
	var places []Place
	for _, name := range []string{"command", "args"} {
		list := documents.Child(container, name)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for i, item := range list.Content {
			args = append(args, item.Value)
			places = append(places, w.at(item, append(slices.Clip(path), fmt.Sprintf("%s[%d]", name, i))))
		}
	}
	image := documents.Text(container, "image")
	w.knownImage(image, args, w.at(container, path))
	w.environment(container, path, linux)
	program, first := programIn(args, image)
	switch {
	case program != "":
		before := len(w.r.Settings)
		w.r.arguments(program, args[first:], func(i int) Place { return places[first+i] }, linux)
		if program == kubesettings.KubeProxy && !linux && hasFlag(w.r.Settings[before:], "config") {
			w.reads(spec)
		}
	default:
		for i, arg := range args {
			if strings.Contains(strings.ToLower(arg), "kube") {
				w.r.Script(arg, places[i])
			}
		}
	}
}

// programIn returns the program that a container's command runs, and the index of its first argument. A command that begins
// with a flag goes to the program that the image is named after.
func programIn(args []string, image string) (p kubesettings.Program, first int) {
	begin := slices.IndexFunc(args, func(arg string) bool {
		return !strings.ContainsAny(arg, " =") && programOf(arg) != ""
	})
	if begin >= 0 {
		return programOf(args[begin]), begin + 1
	}
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return "", 0
	}
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	name, _, _ = strings.Cut(name, ":")
	return programOf(name), 0
}

// environment reads the variables of a container that a script passes to a program: its gates, or its arguments. The
// variable's name says which.
func (w *walk) environment(container *yaml.Node, path []string, linux bool) {
	list := documents.Child(container, "env")
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	around := documents.Text(container, "name") + " " + documents.Text(container, "image")
	for i, item := range list.Content {
		name := strings.ReplaceAll(strings.ToLower(documents.Text(item, "name")), "_", "-")
		value := documents.Text(item, "value")
		place := w.at(item, append(slices.Clip(path), fmt.Sprintf("env[%d]", i), "value"))
		switch {
		case strings.Contains(strings.ReplaceAll(name, "-", ""), "featuregates"):
			if program := lastProgram(around + " " + name); program != "" {
				w.r.flag(program, "feature-gates", value, CommandLine, place, linux)
			}
		case strings.HasPrefix(value, "--"):
			if program := lastProgram(name); program != "" {
				w.r.arguments(program, strings.Fields(value), func(int) Place { return place }, linux)
			}
		}
	}
}

func hasFlag(all []Setting, name string) bool {
	return slices.ContainsFunc(all, func(s Setting) bool { return s.Kind == FlagSetting && s.Name == name })
}

// reads notes the ConfigMaps that pods of a Windows kube-proxy mount.
func (w *walk) reads(spec *yaml.Node) {
	volumes := documents.Child(spec, "volumes")
	if volumes == nil {
		return
	}
	for _, volume := range volumes.Content {
		if name := documents.Text(volume, "configMap", "name"); name != "" {
			w.r.proxyReads[w.namespace+"/"+name] = true
		}
	}
}

// knownImage adds the gates that the script inside a published image sets.
func (w *walk) knownImage(image string, command []string, place Place) {
	for _, gate := range kubesettings.ImageGates(image, command) {
		w.r.add(Setting{Program: kubesettings.KubeProxy, Kind: GateSetting, Name: gate, Value: "true", Form: Image, Place: place})
	}
}
